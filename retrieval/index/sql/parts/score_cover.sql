-- The cover density of the query in a chunk: its fields' weights, divided by the distances between the terms.
ts_rank_cd(%(weights)s::float4[], search, %(match)s::tsquery)::float8
