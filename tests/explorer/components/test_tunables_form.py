"""What admins may send."""

from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils.datastructures import MultiValueDict

from explorer.components.tunables_form import UploadForm


def uploads(*files):
    return UploadForm({}, MultiValueDict({"uploads": [SimpleUploadedFile(name, content) for name, content in files]}))


def test_several_files_are_taken():
    form = uploads(("a.md", b"# A"), ("b.md", b"# B"))
    assert form.is_valid()
    assert [file.name for file in form.cleaned_data["uploads"]] == ["a.md", "b.md"]


def test_no_file_and_an_empty_file_are_refused():
    assert uploads().errors["uploads"] == ["This field is required."]
    assert uploads(("a.md", b"# A"), ("b.md", b"")).errors["uploads"] == ["The submitted file is empty."]
