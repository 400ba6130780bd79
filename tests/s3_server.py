"""moto's S3 server in a thread."""

import logging
from contextlib import contextmanager

import botocore.session
from moto.server import ThreadedMotoServer


@contextmanager
def s3_server():
    """Yield the address of a server without buckets."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@contextmanager
def s3_admin(endpoint):
    """Yield a client with which a test makes and fills buckets."""
    client = botocore.session.get_session().create_client(
        "s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    )
    try:
        yield client
    finally:
        client.close()
