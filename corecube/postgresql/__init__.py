"""A database backend for PostgreSQL that reconnects after an outage; `corecube.embedded` extends it with a server."""
