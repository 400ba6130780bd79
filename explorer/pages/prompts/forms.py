"""The form of a starting prompt."""

from collections.abc import Mapping
from typing import Any

from django import forms

from corecube.errors import CoreCubeError
from corecube.models import Connection
from explorer.components.forms import ConsoleForm, EditForm
from retrieval.search.request import checked_query


class PromptForm(EditForm, ConsoleForm):
    """Title, question and sources of a starting prompt."""

    title = forms.CharField(max_length=80, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    text = forms.CharField(label="Question", widget=forms.Textarea(attrs={"rows": 2}))
    sources = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)

    def __init__(self, data: Mapping[str, Any] | None = None, *, initial: dict[str, Any] | None = None) -> None:
        super().__init__(data, initial=initial)
        sources = self.fields["sources"]
        assert isinstance(sources, forms.MultipleChoiceField)  # noqa: S101 -- declared above
        names = dict(Connection.objects.listed().order_by("name").values_list("slug", "name"))
        # A deleted source stays selectable, so that saving does not show the prompt to more people unnoticed.
        gone = {slug: f"{slug} (deleted)" for slug in (initial or {}).get("sources", ()) if slug not in names}
        sources.choices = list({**names, **gone}.items())

    def clean_text(self) -> str:
        """Refuse a question that the chat would refuse."""
        try:
            return checked_query(self.cleaned_data["text"])
        except CoreCubeError as error:
            raise forms.ValidationError(str(error)) from error
