"""Against moto's S3 server."""

import logging
import socket

import pytest
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

from corecube.connectors.s3 import S3Connector
from corecube.connectors.setup import SourceSetup
from corecube.connectors.types import ItemError, ItemProblem, SourceItem
from corecube.errors import ConfigError, UnavailableError
from tests.s3_server import s3_admin, s3_server

KEYS = {"access_key": "AKIATESTTEST", "secret_key": "not-so-secret"}


@pytest.fixture(scope="module")
def endpoint():
    with s3_server() as address:
        yield address


@pytest.fixture
def admin(endpoint):
    """A client with which a test fills its buckets."""
    with s3_admin(endpoint) as client:
        yield client


@pytest.fixture
def bucket(admin, request):
    name = f"b{abs(hash(request.node.name))}"
    admin.create_bucket(Bucket=name)
    return name


@pytest.fixture
def connector(endpoint, bucket, tmp_path):
    made = []

    def make(*, secrets=None, **config):
        config = {"bucket": bucket, "endpoint": endpoint, "addressing": "path", **config}
        setup = SourceSetup(
            config=config,
            secrets=KEYS if secrets is None else secrets,
            state=tmp_path,
            uploads=tmp_path,
            max_bytes=1000,
        )
        made.append(S3Connector.from_setup(setup))
        return made[-1]

    yield make
    for source in made:
        source._client.close()


def put(admin, bucket, **objects):
    for key, body in objects.items():
        admin.put_object(Bucket=bucket, Key=key.replace("__", "/"), Body=body)


def test_objects_are_listed_in_order_without_folders_and_read(admin, bucket, connector):
    put(admin, bucket, b__two=b"2", a=b"1", b__=b"")
    source = connector()
    items = list(source.items())
    assert [(it.external_id, it.name, it.uri) for it in items] == [
        ("a", "a", f"s3://{bucket}/a"),
        ("b/two", "two", f"s3://{bucket}/b/two"),
    ]
    assert [source.read(it) for it in items] == [b"1", b"2"]


def test_the_version_follows_the_bytes(admin, bucket, connector):
    versions = []
    for body in (b"old", b"new", b"new"):
        put(admin, bucket, a=body)
        (item,) = connector().items()
        versions.append(item.version)
    assert versions[0] != versions[1] == versions[2] != ""


def test_a_listing_of_many_pages_is_whole(bucket, connector):
    store = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for number in range(1001):
        store.put_object(bucket, f"{number:04}.txt", b"x")
    assert [it.external_id for it in connector().items()] == [f"{number:04}.txt" for number in range(1001)]


def test_only_what_lies_below_the_prefix_and_fits_the_patterns_is_listed(admin, bucket, connector):
    put(admin, bucket, docs__a_md=b"x", docs__old__b_md=b"x", docs__c_txt=b"x", other__a_md=b"x")
    source = connector(prefix="docs/", include=["*_md"], exclude=["/old/"])
    assert [it.external_id for it in source.items()] == ["docs/a_md"]


def test_a_large_object_is_a_problem_and_is_not_read(admin, bucket, connector):
    put(admin, bucket, large=b"x" * 1001)
    (problem,) = connector().items()
    assert (problem.external_id, problem.reason) == ("large", "too_large")


def test_an_object_that_grew_after_it_was_listed_is_refused(admin, bucket, connector):
    put(admin, bucket, a=b"x")
    source = connector()
    (item,) = source.items()
    put(admin, bucket, a=b"x" * 1001)
    with pytest.raises(ItemError) as caught:
        source.read(item)
    assert caught.value.reason == "too_large"


def test_an_object_that_went_after_it_was_listed_is_refused(admin, bucket, connector):
    put(admin, bucket, a=b"x")
    source = connector()
    (item,) = source.items()
    admin.delete_object(Bucket=bucket, Key="a")
    with pytest.raises(ItemError, match="NoSuchKey"):
        source.read(item)


def test_a_service_that_went_away_is_a_passing_trouble(admin, bucket, connector):
    put(admin, bucket, a=b"x")
    (item,) = connector().items()
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with pytest.raises(ItemError) as caught:
        connector(endpoint=f"http://127.0.0.1:{port}").read(item)
    assert caught.value.reason == "unavailable"


def test_an_archived_object_is_a_problem(admin, bucket, connector):
    admin.put_object(Bucket=bucket, Key="cold", Body=b"x", StorageClass="GLACIER")
    admin.put_object(Bucket=bucket, Key="rare", Body=b"x", StorageClass="STANDARD_IA")
    kinds = {it.external_id: type(it) for it in connector().items()}
    assert kinds == {"cold": ItemProblem, "rare": SourceItem}


def test_every_capability_passes_on_a_bucket_that_can_be_read(admin, bucket, connector):
    put(admin, bucket, a=b"x")
    assert [(it.name, it.ok) for it in connector().preflight()] == [
        ("reach", True),
        ("authenticate", True),
        ("list", True),
        ("read", True),
    ]


def test_a_missing_bucket_cannot_be_listed(connector):
    source = connector(bucket="nobody-has-this")
    assert [(it.name, it.ok) for it in source.preflight()][-1] == ("list", False)
    with pytest.raises(ConfigError, match="NoSuchBucket"):
        source.check()
    with pytest.raises(UnavailableError):
        list(source.items())


def test_a_service_that_is_not_there_cannot_be_reached(connector):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    source = connector(endpoint=f"http://127.0.0.1:{port}")
    (only,) = source.preflight()
    assert (only.name, only.ok) == ("reach", False)


def test_credentials_of_the_machine_are_not_used(admin, bucket, connector, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAMACHINE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "machine")
    put(admin, bucket, a=b"x")
    sent = []
    source = connector(secrets={})
    source._client.meta.events.register("before-send.s3", lambda request, **_: sent.append(dict(request.headers)))
    assert [it.external_id for it in source.items()] == ["a"]
    assert not any(name.lower() == "authorization" for headers in sent for name in headers)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"bucket": "x y z"}, "bucket"),
        ({"endpoint": "ftp://host"}, "endpoint"),
        ({"endpoint": "http://user:pw@host"}, "user or a password"),
        ({"colour": "blue"}, "colour"),
        ({"max_bytes": 0}, "max_bytes"),
        ({"include": ["!"]}, "not a valid path pattern"),
    ],
)
def test_a_wrong_config_is_named(connector, config, said):
    with pytest.raises(ConfigError, match=said):
        connector(**config)


def test_half_a_pair_of_keys_is_refused(connector):
    with pytest.raises(ConfigError, match="both"):
        connector(secrets={"access_key": "AKIATEST"})


def test_secrets_show_in_no_representation(connector):
    assert "not-so-secret" not in repr(connector())


def test_what_signs_a_request_stays_out_of_the_most_talkative_log(admin, bucket, connector, caplog):
    put(admin, bucket, a=b"x")
    caplog.set_level(logging.DEBUG)
    source = connector(secrets={**KEYS, "session_token": "token-zanzibar"})
    (item,) = source.items()
    assert source.read(item) == b"x"
    assert not any(secret in caplog.text for secret in ("token-zanzibar", "not-so-secret", "Signature="))


def test_a_bucket_is_never_asked_with_credentials_of_the_machine(monkeypatch, serve, tmp_path):
    """Botocore would ask the metadata service for some where it is given none."""
    metadata, bucket = serve(), serve()
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.url)
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", metadata.url)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    config = {"bucket": "bucket", "endpoint": bucket.url, "addressing": "path"}
    setup = SourceSetup(config=config, state=tmp_path, uploads=tmp_path, max_bytes=1)
    source = S3Connector.from_setup(setup)
    assert list(source.preflight())
    source._client.close()
    assert (bool(bucket.requests), metadata.requests) == (True, [])
