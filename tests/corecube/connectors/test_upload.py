import io

import pytest

from corecube.connectors import ItemError
from corecube.connectors.upload import save_upload, upload_connector
from corecube.models import Connection

CONNECTION = Connection(slug="inbox", kind="upload")


def files():
    return [item.external_id for item in upload_connector(CONNECTION).items()]


def test_an_upload_is_listed_and_read_back():
    save_upload(CONNECTION, name="plan.md", content=io.BytesIO(b"# Plan"))
    source = upload_connector(CONNECTION)
    (item,) = source.items()
    assert (item.external_id, source.read(item)) == ("plan.md", b"# Plan")


def test_an_upload_with_the_same_name_replaces_the_earlier_one():
    for content in (b"old", b"new"):
        save_upload(CONNECTION, name="plan.md", content=io.BytesIO(content))
    assert files() == ["plan.md"]


@pytest.mark.parametrize("name", ["../../etc/passwd", "C:\\temp\\passwd", "/etc/passwd"])
def test_a_path_is_cut_to_its_name(name, settings):
    target = save_upload(CONNECTION, name=name, content=io.BytesIO(b"x"))
    assert target == settings.CORECUBE_UPLOADS_DIR / "inbox" / "passwd"


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
    assert list((settings.CORECUBE_UPLOADS_DIR / "inbox").iterdir()) == []
