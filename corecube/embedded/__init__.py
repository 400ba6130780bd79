"""A database backend with an embedded PostgreSQL server (with pgvector), for one machine without setup.

Use it as `ENGINE = "corecube.embedded"`. The programs come from a Python package, the data is in `var/postgres`, and
the server listens only on a Unix socket. The first process that connects starts it; it stops when the last one ends.

`base` is Django's backend, `server` starts and shares the server, `install` has the programs, the system user and the
configuration, and `keeper` is the small process that runs the server.
"""
