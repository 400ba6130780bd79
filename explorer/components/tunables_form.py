"""Forms: what people may send, checked before anything is written."""

from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile

from retrieval.engine.tunables import TunableFacts
from retrieval.presets.preset import PresetConfig


class SeveralFiles(forms.ClearableFileInput):
    """A file input that takes several files."""

    allow_multiple_selected = True


class SeveralFilesField(forms.FileField):
    """One or more files; each is checked as a file of its own."""

    widget = SeveralFiles

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile]:  # noqa: ANN401 -- Django's signature
        """Return the files; raise ValidationError for none, or for an empty one."""
        check = super().clean
        files = data if isinstance(data, list | tuple) and data else [None]
        return [check(file, initial) for file in files]


class UploadForm(forms.Form):
    """Files for a connection of kind upload."""

    uploads = SeveralFilesField(max_length=200)


class QualityForm(forms.Form):
    """The threshold of the quality preview."""

    minimum = forms.FloatField(
        min_value=0.0,
        max_value=1.0,
        label="Minimum quality",
        widget=forms.NumberInput(attrs={"class": "input", "step": "0.05"}),
    )


class TunablesForm(forms.Form):
    """A preset's numbers, a field for each tunable under its dotted name, with its bounds and help."""

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
        """The numbers of the fields that are right, by dotted name."""
        return {name: value for name, value in self.cleaned_data.items() if name != "note"}

    def clean(self) -> None:
        """Check what no field can know alone: which number must not exceed which."""
        for name, problem in self._defaults.problems(self.numbers).items():
            self.add_error(name, f"It {problem}.")


def number_field(facts: TunableFacts) -> forms.Field:
    """Return the field of a tunable: whole numbers where it counts in them."""
    step = "1" if facts.is_whole else "any"
    widget = forms.NumberInput(attrs={"class": "input", "step": step})
    if facts.is_whole:
        low, high = int(facts.low), int(facts.high)
        return forms.IntegerField(min_value=low, max_value=high, label=facts.name, help_text=facts.help, widget=widget)
    return forms.FloatField(
        min_value=facts.low, max_value=facts.high, label=facts.name, help_text=facts.help, widget=widget
    )
