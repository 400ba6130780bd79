"""The vector files: int8 vectors beside PostgreSQL, compared one by one."""
