"""Forms that several pages use, the style of their fields, and a check that two people do not overwrite each other."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.forms import BoundField
from django.utils.text import slugify

from corecube.data import read_toml
from corecube.errors import CoreCubeError
from retrieval.engine.tunables import TunableFacts
from retrieval.presets.preset import PresetConfig

STALE: Final = "Someone else has changed this in the meantime. Saving again overwrites their changes."
_TYPE_AGAIN: Final = "Enter secrets again."
_CONFLICT: Final = 409
_INVALID: Final = 422
_STYLED: Final = (forms.TextInput, forms.NumberInput, forms.PasswordInput, forms.Textarea, forms.Select)
#: By form, the labels and help of its fields and the groups in which they are shown.
FORM_TEXTS: Final[Mapping[str, Any]] = read_toml("explorer", "forms.toml")


class _ConsoleField(BoundField):
    """A field with the texts of its form in `forms.toml`, and with the console's style."""

    def __init__(self, form: forms.BaseForm, field: forms.Field, name: str) -> None:
        super().__init__(form, field, name)
        texts = FORM_TEXTS.get(type(form).__name__, {})
        self.label = texts.get("labels", {}).get(name, self.label)
        self.help_text = texts.get("help", {}).get(name, self.help_text)

    def build_widget_attrs(self, attrs: Any, widget: forms.Widget | None = None) -> dict[str, Any]:  # noqa: ANN401 -- Django's
        """Style text inputs and menus that have no own style."""
        found = super().build_widget_attrs(attrs, widget)
        shown = widget or self.field.widget
        return {"class": "input", **found} if isinstance(shown, _STYLED) and "class" not in shown.attrs else found


class ConsoleForm(forms.Form):
    """A form with the console's fields."""

    bound_field_class = _ConsoleField

    @contextmanager
    def errors_at(self, name: str | None) -> Iterator[None]:
        """End the block at a CoreCubeError, and show it at this field, or above the form."""
        try:
            yield
        except CoreCubeError as error:
            self.add_error(name, str(error))


class EditForm(forms.BaseForm):
    """A mixin for a form whose initial values are the stored ones; its page submits `made_from` with it.

    A form is invalid if the stored values changed since it was rendered. The page then shows it with the new
    `made_from`, so that it can be submitted again.
    """

    bound_field_class = _ConsoleField

    @property
    def made_from(self) -> str:
        """A fingerprint of the stored values: SHA-256, in hexadecimal."""
        stored = [(name, str(_stored(self[name]))) for name in self.fields]
        return hashlib.sha256(repr(stored).encode()).hexdigest()

    @property
    def is_stale(self) -> bool:
        """Whether the stored values changed since the form was rendered; False without `made_from`."""
        return self.is_bound and self.data.get("made_from", self.made_from) != self.made_from

    @property
    def status(self) -> int:
        """The HTTP status of a page that shows the form."""
        if self.is_stale:
            return _CONFLICT
        return _INVALID if self.errors else 200

    def clean(self) -> dict[str, Any]:
        """Refuse a stale form."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if self.is_stale:
            has_secrets = any(_is_secret(self[name]) for name in self.changed_data)
            self.add_error(None, f"{STALE} {_TYPE_AGAIN}" if has_secrets else STALE)
        return values

    def stored_now(self) -> Iterator[tuple[str, str]]:
        """Yield label and stored value of each changed field, except secrets."""
        for name in self.changed_data:
            field = self[name]
            # A checkbox without a stored value is an action, such as removing a secret.
            is_action = isinstance(field.field, forms.BooleanField) and field.initial is None
            if not is_action and not _is_secret(field):
                yield str(field.label), _words(field) or "empty"


class SluggedForm(EditForm, forms.ModelForm):  # type: ignore[type-arg]  # generic only in the stubs
    """A stored row with a name and a slug, whose settings are shown in groups."""

    def clean(self) -> dict[str, Any]:
        """Fill in a missing slug."""
        values = {**(super().clean() or {})}
        values["slug"] = values.get("slug") or slugify(values.get("name", ""))[:50].strip("-_")
        if not values["slug"] and "name" not in self.errors and "slug" not in self.errors:
            self.add_error("name", "Use a letter (a-z) or digit in the name, or enter a slug.")
        return values

    def _get_validation_exclusions(self) -> set[str]:
        """Do not complain about a slug that could not be made of a missing name."""
        excluded: set[str] = super()._get_validation_exclusions()  # type: ignore[misc]  # not in the stubs
        return excluded if self.cleaned_data.get("slug") else excluded | {"slug"}

    def identity(self) -> list[BoundField]:
        """Return the fields that identify the row."""
        return [self["name"], self["slug"]]

    def groups(self) -> Iterator[dict[str, object]]:
        """Yield the other settings in groups."""
        for group in FORM_TEXTS[type(self).__name__]["groups"]:
            yield {**group, "fields": [self[name] for name in group["fields"]]}


def _stored(field: BoundField) -> Any:  # noqa: ANN401 -- a form field's value
    return field.field.prepare_value(field.initial)


def _is_secret(field: BoundField) -> bool:
    return isinstance(field.field.widget, forms.PasswordInput)


def _words(field: BoundField) -> str:
    stored = _stored(field)
    if isinstance(stored, bool):
        return "yes" if stored else "no"
    choices = getattr(field.field, "choices", None)
    if choices is None:
        return "" if stored is None else ", ".join(str(stored).splitlines())
    chosen = {str(it) for it in stored} if isinstance(stored, list) else {str(stored)}
    return ", ".join(str(label) for key, label in choices if str(key) in chosen)


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


class UploadForm(ConsoleForm):
    """Files for a connection of kind upload."""

    uploads = _SeveralFilesField(max_length=200)


class QualityForm(ConsoleForm):
    """The threshold of the quality preview."""

    minimum = forms.FloatField(min_value=0.0, max_value=1.0, widget=forms.NumberInput(attrs={"step": "0.05"}))


class TunablesForm(ConsoleForm):
    """A preset's settings: a field for each tunable by its dotted name, with its bounds and help."""

    note = forms.CharField(required=False, max_length=200)

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
    widget = forms.NumberInput(attrs={"step": "1" if facts.is_whole else "any"})
    options: dict[str, Any] = {"label": facts.name, "help_text": facts.help, "widget": widget}
    if facts.is_whole:
        return forms.IntegerField(min_value=int(facts.low), max_value=int(facts.high), **options)
    return forms.FloatField(min_value=facts.low, max_value=facts.high, **options)
