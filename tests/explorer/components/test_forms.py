"""What a form was made from."""

from django import forms
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils.datastructures import MultiValueDict

from explorer.components.forms import EditForm, UploadForm


class _Form(EditForm, forms.Form):
    name = forms.CharField()
    level = forms.TypedChoiceField(choices=[(1, "Low"), (2, "High")], coerce=int)
    is_on = forms.BooleanField(required=False)
    token = forms.CharField(required=False, widget=forms.PasswordInput)
    drop = forms.BooleanField(required=False)


STORED = {"name": "Theirs", "level": 2, "is_on": True}
TYPED = {"name": "Mine", "level": "1", "token": "hush", "drop": "on"}


def test_it_is_the_same_for_the_same_values_and_another_for_each_other_one():
    marks = [_Form(initial=STORED | change).made_from for change in ({}, {"name": "x"}, {"level": 1}, {"is_on": False})]
    assert len(set(marks)) == 4
    assert _Form(TYPED, initial=STORED).made_from == marks[0]


def test_a_form_that_was_made_from_other_values_is_refused_and_can_be_sent_again():
    form = _Form(TYPED | {"made_from": _Form(initial=STORED | {"name": "Before"}).made_from}, initial=STORED)
    assert not form.is_valid()
    assert form.status == 409
    assert "Someone else has changed this in the meantime." in form.non_field_errors()[0]
    assert "Enter secrets again" in form.non_field_errors()[0]
    assert list(form.stored_now()) == [("Name", "Theirs"), ("Level", "High"), ("Is on", "yes")]
    again = _Form(TYPED | {"made_from": form.made_from}, initial=STORED)
    assert (again.is_valid(), again.status) == (True, 200)


def test_one_that_does_not_say_is_taken_and_a_mistake_is_no_conflict():
    assert _Form(TYPED, initial=STORED).is_valid()
    assert _Form({}, initial=STORED).status == 422
    assert not _Form(initial=STORED).is_stale


def uploads(*files):
    return UploadForm({}, MultiValueDict({"uploads": [SimpleUploadedFile(name, content) for name, content in files]}))


def test_several_files_are_taken():
    form = uploads(("a.md", b"# A"), ("b.md", b"# B"))
    assert form.is_valid()
    assert [file.name for file in form.cleaned_data["uploads"]] == ["a.md", "b.md"]


def test_no_file_and_an_empty_file_are_refused():
    assert uploads().errors["uploads"] == ["This field is required."]
    assert uploads(("a.md", b"# A"), ("b.md", b"")).errors["uploads"] == ["The submitted file is empty."]
