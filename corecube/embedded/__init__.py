"""A database backend that brings its own PostgreSQL (with pgvector), for one machine and no set-up.

Use it as `ENGINE = "corecube.embedded"`. The programs come from a Python package, the data stays in
`var/postgres`, and the server listens on a Unix socket alone. The first process that connects starts
it; when the last one has ended, in whatever way, it stops.

`base` is Django's way in, `server` starts and shares, `install` knows the programs, the system user and
the configuration, `keeper` is the small process that runs the server.
"""
