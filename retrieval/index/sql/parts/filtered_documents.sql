-- Leaves, beside the scope, the chunks of the documents that a request names.
AND {document} = ANY(%(filter_documents)s::uuid[])
