"""Measuring a preset at a chosen size, on synthetic chunks in a database of its own.

`plan` says what to measure, `synthesis` makes text and vectors, `scratch` the database, `corpus` fills it,
`workload` makes the queries, `runner` searches and sums up.
"""
