-- Leaves, beside the scope, chunks of at least some quality that hold a kind of content, where the chunks are read anyway.
AND {chunk}.quality >= %(filter_quality)s
AND (%(filter_hint)s = '' OR %(filter_hint)s = ANY({chunk}.hints))
