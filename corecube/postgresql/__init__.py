"""A database backend for PostgreSQL that reconnects after an outage: `ENGINE = "corecube.postgresql"`.

`base` is Django's backend, `reconnecting` the connection pool, `answering` runs statements with a timeout.
`corecube.embedded` extends it with a server.
"""
