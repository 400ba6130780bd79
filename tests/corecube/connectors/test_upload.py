import io

import pytest

from corecube.connectors import checked_config, connector_for
from corecube.connectors.setup import remove_folder, upload_folder
from corecube.connectors.types import ItemError
from corecube.connectors.upload import save_upload
from corecube.models import Compartment, Connection

pytestmark = pytest.mark.usefixtures("own_engine")
CONNECTION = Connection(pk=7, slug="inbox", kind="upload")


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
def test_a_path_is_cut_to_its_name(name, settings):
    target = save_upload(CONNECTION, name=name, content=io.BytesIO(b"x"))
    assert target == settings.CORECUBE_UPLOADS_DIR / "7" / "passwd"


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
    assert list((settings.CORECUBE_UPLOADS_DIR / "7").iterdir()) == []


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
    folder = save_upload(connection, name="plan.md", content=io.BytesIO(b"# Plan")).parent
    with django_capture_on_commit_callbacks(execute=True):
        Connection.objects.filter(pk=connection.pk).delete()
        assert folder.exists()
    assert not folder.exists()


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
