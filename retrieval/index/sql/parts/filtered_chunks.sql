-- Leaves, beside the scope, chunks of at least some quality that hold a kind of content, where the chunks are read anyway.
AND {chunk}.quality >= %(kept_quality)s
AND (%(kept_hint)s = '' OR %(kept_hint)s = ANY({chunk}.hints))
