-- How this server lets its files be read ahead: by pg_prewarm, and by reading them for this account.
SELECT
    EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_prewarm') AS prewarms,
    has_function_privilege('pg_read_binary_file(text, bigint, bigint, boolean)', 'execute') AS reads,
    pg_size_bytes(current_setting('shared_buffers')) AS buffers
