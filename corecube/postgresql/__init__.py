"""A database backend for a PostgreSQL server that may go away and come back: `ENGINE = "corecube.postgresql"`.

`base` is Django's way in, `reconnecting` is the pool of connections, `answering` asks a server with a limit of time.
`corecube.embedded` builds on it and brings the server too.
"""
