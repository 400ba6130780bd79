-- Where what a search reads lies, with its bytes: the HNSW index first, then the indexes by key, then the rows.
SELECT named.relation::text AS name, pg_relation_filepath(named.relation) AS path, pg_relation_size(named.relation) AS bytes
FROM (
    SELECT to_regclass(it) AS relation, place FROM unnest(%(names)s::text[]) WITH ORDINALITY AS given (it, place)
) AS named
WHERE named.relation IS NOT NULL
ORDER BY named.place
