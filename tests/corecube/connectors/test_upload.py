"""Uploads in a folder, and in a bucket of moto's S3 server."""

import io
import shutil

import pytest

from corecube.backup.parts import Parts
from corecube.backup.sealing import Seal
from corecube.backup.uploads import has_uploads, preserved_uploads, write_uploads
from corecube.connectors import checked_config, connector_for
from corecube.connectors.places import FolderPlace
from corecube.connectors.setup import remove_folder, upload_folder
from corecube.connectors.types import ItemError, ItemProblem
from corecube.connectors.upload import remove_uploads, save_upload, upload_place
from corecube.errors import ConfigError, UnavailableError
from corecube.models import Compartment, Connection
from tests.s3_server import s3_admin, s3_server

CONNECTION = Connection(pk=7, slug="inbox", kind="upload")


@pytest.fixture(scope="module")
def endpoint():
    with s3_server() as address, s3_admin(address) as admin:
        admin.create_bucket(Bucket="uploads")
        yield address


@pytest.fixture(params=["folder", "bucket"], autouse=True)
def stored_in(request, own_engine, endpoint, settings):
    """Store the uploads of each test first in a folder, then in a bucket."""
    if request.param == "bucket":
        settings.CORECUBE_UPLOADS_TO = f"s3://uploads/{abs(hash(request.node.name))}"
        settings.CORECUBE_UPLOADS_S3_ENDPOINT = endpoint
        settings.CORECUBE_UPLOADS_S3_ACCESS_KEY = settings.CORECUBE_UPLOADS_S3_SECRET_KEY = "key"
    return request.param


def save(name, content=b"x", folder=""):
    return save_upload(CONNECTION, name=name, content=io.BytesIO(content), folder=folder)


def files():
    return [item.external_id for item in connector_for(CONNECTION).items()]


def test_an_upload_is_listed_and_read_back():
    save_upload(CONNECTION, name="plan.md", content=io.BytesIO(b"# Plan"))
    source = connector_for(CONNECTION)
    (item,) = source.items()
    assert (item.external_id, source.read(item)) == ("plan.md", b"# Plan")


def test_an_upload_with_the_same_name_replaces_the_earlier_one():
    for content in (b"old", b"new"):
        save_upload(CONNECTION, name="plan.md", content=io.BytesIO(content))
    assert files() == ["plan.md"]


@pytest.mark.parametrize("name", ["../../etc/passwd", "C:\\temp\\passwd", "/etc/passwd"])
def test_a_path_is_cut_to_its_name(name):
    assert save(name) == "passwd"
    assert files() == ["passwd"]


@pytest.mark.parametrize("name", ["", "..", ".env", "a\nb", "x" * 201])
def test_a_name_that_is_no_plain_file_name_is_refused(name):
    with pytest.raises(ItemError) as caught:
        save_upload(CONNECTION, name=name, content=io.BytesIO(b"x"))
    assert caught.value.reason == "bad_name"


def test_an_upload_over_the_limit_is_refused_and_leaves_nothing(settings):
    settings.CORECUBE_MAX_FILE_BYTES = 10
    with pytest.raises(ItemError) as caught:
        save_upload(CONNECTION, name="large.txt", content=io.BytesIO(b"x" * 11))
    assert caught.value.reason == "too_large"
    assert files() == []
    folder = settings.CORECUBE_UPLOADS_DIR / "7"
    assert not folder.exists() or list(folder.iterdir()) == []


def test_before_the_first_upload_there_is_nothing_and_no_folder(settings):
    connector_for(CONNECTION).check()
    checked_config("upload", {})
    assert files() == []
    assert not settings.CORECUBE_UPLOADS_DIR.exists()


@pytest.fixture
def inbox(db):
    def make():
        compartment = Compartment.objects.get_or_create(slug="c", name="C")[0]
        return Connection.objects.create(slug="inbox", name="Inbox", kind="upload", compartment=compartment)

    return make


def test_a_later_connection_of_the_same_slug_does_not_serve_the_old_files(inbox):
    old = inbox()
    save_upload(old, name="plan.md", content=io.BytesIO(b"# Plan"))
    old.delete()
    assert list(connector_for(inbox()).items()) == []


def test_uploads_go_with_their_connection_once_that_is_committed(inbox, django_capture_on_commit_callbacks):
    connection = inbox()
    save_upload(connection, name="plan.md", content=io.BytesIO(b"# Plan"))
    with django_capture_on_commit_callbacks(execute=True):
        Connection.objects.filter(pk=connection.pk).delete()
        assert has_uploads()
    assert not has_uploads()


def test_deleting_a_connection_without_uploads_is_quiet(inbox, caplog, django_capture_on_commit_callbacks):
    connection = inbox()
    with django_capture_on_commit_callbacks(execute=True):
        connection.delete()
    assert caplog.records == []


def test_uploads_that_cannot_be_removed_are_logged(settings, caplog):
    folder = upload_folder(CONNECTION)
    folder.parent.mkdir()
    folder.touch()
    remove_folder(folder)
    assert str(folder) in caplog.text


def test_an_item_is_the_same_wherever_it_is_stored():
    save("plan.md", b"# Plan", "handbook\\2026")
    (item,) = connector_for(CONNECTION).items()
    assert (item.external_id, item.name, item.uri) == ("handbook/2026/plan.md", "handbook/2026/plan.md", "")
    assert connector_for(CONNECTION).read(item) == b"# Plan"


def test_a_file_and_a_folder_cannot_have_one_name():
    save("a")
    with pytest.raises(ItemError, match=r"A file with the name of this folder exists\."):
        save("plan.md", folder="a/b")
    save("plan.md", folder="b/c")
    with pytest.raises(ItemError, match=r"A folder with the name of this file exists\."):
        save("c", folder="b")
    assert sorted(files()) == ["a", "b/c/plan.md"]


def test_a_file_over_the_limit_of_its_connection_is_a_problem_by_its_name():
    save("large.txt", b"x" * 11, "logs")
    (problem,) = connector_for(Connection(pk=7, slug="inbox", kind="upload", config={"max_bytes": 10})).items()
    assert isinstance(problem, ItemProblem)
    assert (problem.external_id, problem.reason) == ("logs/large.txt", "too_large")


def test_patterns_match_paths_below_the_uploads():
    for name in ("plan.md", "plan.txt"):
        save(name, folder="handbook")
    config = {"include": ["handbook/*.md"]}
    source = connector_for(Connection(pk=7, slug="inbox", kind="upload", config=config))
    assert [it.external_id for it in source.items()] == ["handbook/plan.md"]


def test_a_machine_without_the_files_says_what_to_do(stored_in, settings):
    save("plan.md")
    connector_for(CONNECTION).require_files()
    if stored_in == "bucket":
        settings.CORECUBE_UPLOADS_TO += "/other"
    else:
        shutil.rmtree(settings.CORECUBE_UPLOADS_DIR)
    with pytest.raises(ConfigError, match="CORECUBE_UPLOADS_TO"):
        connector_for(CONNECTION).require_files()


def test_uploads_of_another_connection_are_not_listed_nor_removed():
    save("plan.md")
    save_upload(Connection(pk=77, slug="other", kind="upload"), name="other.md", content=io.BytesIO(b"x"))
    assert files() == ["plan.md"]
    remove_uploads(7)
    assert files() == []
    assert has_uploads()


def test_a_backup_has_the_uploads_of_its_connections(tmp_path):
    parts = Parts(FolderPlace(tmp_path / "backups"), Seal())
    save("plan.md", b"# Plan", "handbook")
    save_upload(Connection(pk=8, slug="gone", kind="upload"), name="gone.md", content=io.BytesIO(b"x"))
    with preserved_uploads() as uploads:
        uploads.link()
        uploads.leave_out([7])
        found = uploads.store(parts, report=lambda _: None)
    assert [it.path for it in found] == ["7/handbook/plan.md"]
    save("later.md")
    write_uploads(found, parts)
    assert files() == ["handbook/plan.md"]
    assert connector_for(CONNECTION).read(next(iter(connector_for(CONNECTION).items()))) == b"# Plan"


@pytest.mark.parametrize("stored_in", ["bucket"], indirect=True)
def test_no_key_is_in_an_error_or_a_representation(settings):
    settings.CORECUBE_UPLOADS_S3_SECRET_KEY = "tangerine"
    settings.CORECUBE_UPLOADS_TO = "s3://nobucket"
    with pytest.raises(UnavailableError, match="NoSuchBucket") as caught:
        save("plan.md")
    assert "tangerine" not in f"{caught.value} {upload_place()} {connector_for(CONNECTION)}"


@pytest.mark.parametrize("stored_in", ["bucket"], indirect=True)
def test_a_bucket_that_does_not_answer_is_reported_and_logged(settings, caplog):
    settings.CORECUBE_UPLOADS_S3_ENDPOINT = "http://127.0.0.1:1"
    with pytest.raises(UnavailableError, match="EndpointConnectionError"):
        upload_place().names()
    with pytest.raises(ConfigError):
        connector_for(CONNECTION).check()
    remove_uploads(7)
    assert "uploads.removal_failed connection=7" in caplog.text
