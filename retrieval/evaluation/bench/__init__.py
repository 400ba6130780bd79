"""Benchmarks of a preset with a given number of synthetic chunks in a separate database.

`plan` defines the benchmark, `synthesis` generates text and vectors, `scratch` creates the database, `corpus` fills it,
`workload` generates the queries, `runner` searches and reports, `readers` search over HTTP, `against` compares with an
earlier commit.
"""
