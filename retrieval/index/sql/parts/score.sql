-- What one term of the query adds to a chunk's score: idf x rank / (rank + saturation), 0 where it is absent.
CASE
    WHEN search @@ %(term_{n})s::tsquery THEN %(idf_{n})s::float8
        * (1 - %(saturation)s / (ts_rank(%(weights)s::float4[], search, %(term_{n})s::tsquery, 1) + %(saturation)s))
    ELSE 0
END
