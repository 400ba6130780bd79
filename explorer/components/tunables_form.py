"""Forms that several pages use."""

from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile

from retrieval.engine.tunables import TunableFacts
from retrieval.presets.preset import PresetConfig


class _SeveralFiles(forms.ClearableFileInput):
    allow_multiple_selected = True


class _SeveralFilesField(forms.FileField):
    """One or more files, each validated separately."""

    widget = _SeveralFiles

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile]:  # noqa: ANN401 -- Django's signature
        """Return the files; raise ValidationError for none, or for an empty one."""
        check = super().clean
        files = data if isinstance(data, list | tuple) and data else [None]
        return [check(file, initial) for file in files]


class UploadForm(forms.Form):
    """Files for a connection of kind upload."""

    uploads = _SeveralFilesField(max_length=200)


class QualityForm(forms.Form):
    """The threshold of the quality preview."""

    minimum = forms.FloatField(
        min_value=0.0,
        max_value=1.0,
        label="Minimum quality",
        widget=forms.NumberInput(attrs={"class": "input", "step": "0.05"}),
    )


class TunablesForm(forms.Form):
    """A preset's settings: a field for each tunable by its dotted name, with its bounds and help."""

    note = forms.CharField(
        required=False,
        max_length=200,
        label="Note",
        help_text="What you changed and why. Shown in the version history.",
        widget=forms.TextInput(attrs={"class": "input"}),
    )

    def __init__(self, *args: Any, defaults: PresetConfig, **kwargs: Any) -> None:  # noqa: ANN401 -- Django's
        super().__init__(*args, **kwargs)
        self._defaults = defaults
        for facts in defaults.declared_below():
            self.fields[facts.name] = number_field(facts)

    @property
    def numbers(self) -> dict[str, Any]:
        """The values of the valid fields, by dotted name."""
        return {name: value for name, value in self.cleaned_data.items() if name != "note"}

    def clean(self) -> None:
        """Validate what depends on several fields: values that must not exceed others."""
        for name, problem in self._defaults.problems(self.numbers).items():
            self.add_error(name, f"It {problem}.")


def number_field(facts: TunableFacts) -> forms.Field:
    """Return the field of a tunable: an integer field for integers."""
    widget = forms.NumberInput(attrs={"class": "input", "step": "1" if facts.is_whole else "any"})
    options: dict[str, Any] = {"label": facts.name, "help_text": facts.help, "widget": widget}
    if facts.is_whole:
        return forms.IntegerField(min_value=int(facts.low), max_value=int(facts.high), **options)
    return forms.FloatField(min_value=facts.low, max_value=facts.high, **options)
