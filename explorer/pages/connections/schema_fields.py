"""Form fields generated from a JSON schema, so that a connector's config needs no form."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms

_MEGABYTE: Final = 2**20
_MAX_LENGTH: Final = 2000
_LIMITS: Final = {
    "min_value": "Must be at least %(limit_value)s.",
    "max_value": "Must be at most %(limit_value)s.",
    "max_length": "Use at most %(limit_value)d characters.",
    "invalid": "Enter a number.",
}

Schema = Mapping[str, Any]


class LinesField(forms.CharField):
    """A list of texts, one per line; empty lines are ignored."""

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401 -- Django's
        attrs = {"class": "input lines", "rows": 3, "spellcheck": "false"}
        super().__init__(widget=forms.Textarea(attrs=attrs), **kwargs)

    def prepare_value(self, value: Any) -> str:  # noqa: ANN401 -- Django's
        """Return the lines as text."""
        return "\n".join(value) if isinstance(value, list | tuple) else str(value or "")

    def to_python(self, value: Any) -> Any:  # noqa: ANN401 -- Django's
        """Return the list."""
        return [line.strip() for line in str(value or "").splitlines() if line.strip()]


class FigureField(forms.FloatField):
    """A number, shown without needless digits: 180 and not 180.0."""

    def prepare_value(self, value: Any) -> Any:  # noqa: ANN401 -- Django's
        """Return a number as text, entered text unchanged."""
        return f"{value:.10g}" if isinstance(value, float) else value


class MegabytesField(forms.FloatField):
    """A number of bytes, shown and entered as megabytes."""

    def prepare_value(self, value: Any) -> Any:  # noqa: ANN401 -- Django's
        """Return bytes as megabytes, entered text unchanged."""
        return f"{value / _MEGABYTE:.10g}" if isinstance(value, int) else value

    def clean(self, value: Any) -> Any:  # noqa: ANN401 -- Django's
        """Return bytes; None for an empty field."""
        megabytes = super().clean(value)
        return None if megabytes is None else round(megabytes * _MEGABYTE)

    def has_changed(self, initial: Any, data: Any) -> bool:  # noqa: ANN401 -- Django's
        """Return whether the entered value differs from the stored one."""
        try:
            return bool(self.clean(data) != initial)
        except forms.ValidationError:
            return True


def field_of(name: str, schema: Schema, *, required: bool) -> forms.Field:
    """Return the form field of one property of a schema."""
    schema = _not_null(schema)
    options = {"required": required, "help_text": schema.get("description", ""), "error_messages": _LIMITS}
    if schema.get("type") == "boolean":
        return forms.BooleanField(required=False, help_text=options["help_text"])
    if schema.get("type") == "array":
        return LinesField(**options)
    if "enum" in schema:
        choices = [(value, str(value).replace("_", " ").capitalize()) for value in schema["enum"]]
        return forms.ChoiceField(choices=choices, widget=forms.Select(attrs={"class": "input"}), **options)
    if schema.get("type") in {"integer", "number"}:
        return _number(name, schema, options)
    widget = forms.TextInput(attrs={"class": "input", "spellcheck": "false", "autocomplete": "off"})
    return forms.CharField(max_length=schema.get("maxLength", _MAX_LENGTH), widget=widget, **options)


def _number(name: str, schema: Schema, options: dict[str, Any]) -> forms.Field:
    if name.endswith("_bytes"):
        return MegabytesField(min_value=0, widget=_number_input("any"), **options)
    limits: dict[str, Any] = {"min_value": schema.get("minimum"), "max_value": schema.get("maximum")}
    if schema["type"] == "integer":
        return forms.IntegerField(**limits, widget=_number_input("1"), **options)
    return FigureField(**limits, widget=_number_input("any"), **options)


def _number_input(step: str) -> forms.NumberInput:
    return forms.NumberInput(attrs={"class": "input", "step": step})


def _not_null(schema: Schema) -> Schema:
    """Return the schema without the alternative null."""
    choices = [it for it in schema.get("anyOf", ()) if it.get("type") != "null"]
    return {**schema, **choices[0]} if len(choices) == 1 else schema
