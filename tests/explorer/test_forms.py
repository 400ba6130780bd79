"""What admins may send."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils.datastructures import MultiValueDict

from explorer.forms import NewSourceForm, UploadForm


@pytest.fixture
def send(world, tmp_path):
    def form(**changes):
        values = {
            "name": "Team wiki",
            "kind": "folder",
            "path": str(tmp_path),
            "compartment": world.runbooks.compartment.pk,
            "sensitivity": 1,
            "trust": 2,
        }
        return NewSourceForm({**values, **changes})

    return form


def test_a_source_has_the_language_that_was_chosen_or_the_installation_s(send):
    assert saved(send(language="german")).language == "german"
    assert saved(send(name="Another wiki")).language == ""
    assert "language" in send(language="klingon").errors


def saved(form):
    assert form.is_valid()
    return form.save()


def test_a_folder_becomes_a_connection(send, tmp_path):
    connection = saved(send())
    assert (connection.slug, connection.kind, connection.config) == ("team-wiki", "folder", {"path": str(tmp_path)})


def test_uploads_need_no_path(send):
    connection = saved(send(kind="upload", path=""))
    assert connection.config == {}


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"path": ""}, "path", "A folder needs its path."),
        ({"path": "/no/such/folder"}, "path", "There is nothing at /no/such/folder."),
        ({"name": "Runbooks"}, "name", "There is a source with this name, or one much like it."),
        ({"name": "!!!"}, "name", "The name needs a letter or a digit."),
        ({"compartment": ""}, "compartment", "This field is required."),
        ({"kind": "carrier pigeon"}, "kind", None),
        ({"sensitivity": 9}, "sensitivity", None),
    ],
)
def test_what_is_wrong_is_said_at_its_field(send, changes, field, message):
    form = send(**changes)
    assert not form.is_valid()
    assert list(form.errors) == [field]
    assert message is None or form.errors[field] == [message]


def uploads(*files):
    return UploadForm({}, MultiValueDict({"uploads": [SimpleUploadedFile(name, content) for name, content in files]}))


def test_several_files_are_taken():
    form = uploads(("a.md", b"# A"), ("b.md", b"# B"))
    assert form.is_valid()
    assert [file.name for file in form.cleaned_data["uploads"]] == ["a.md", "b.md"]


def test_no_file_and_an_empty_file_are_refused():
    assert uploads().errors["uploads"] == ["This field is required."]
    assert uploads(("a.md", b"# A"), ("b.md", b"")).errors["uploads"] == ["The submitted file is empty."]
