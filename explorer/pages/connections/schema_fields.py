"""Form fields for what a JSON schema declares, so that a connector's config needs no form of its own."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms

_MEGABYTE: Final = 2**20
_WIDE: Final = 2000
_LIMITS: Final = {
    "min_value": "It must be at least %(limit_value)s.",
    "max_value": "It must be at most %(limit_value)s.",
    "max_length": "It has more than %(limit_value)d characters.",
    "invalid": "It must be a number.",
}

Schema = Mapping[str, Any]


class LinesField(forms.CharField):
    """A list of texts, one a line; empty lines do not count."""

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
    """A number, shown without digits that say nothing: 180 and not 180.0."""

    def prepare_value(self, value: Any) -> Any:  # noqa: ANN401 -- Django's
        """Return a number as text, what was typed as it is."""
        return f"{value:.10g}" if isinstance(value, float) else value


class MegabytesField(forms.FloatField):
    """A number of bytes, shown and filled in as megabytes."""

    def prepare_value(self, value: Any) -> Any:  # noqa: ANN401 -- Django's
        """Return bytes as megabytes, what was typed as it is."""
        return f"{value / _MEGABYTE:.10g}" if isinstance(value, int) else value

    def clean(self, value: Any) -> Any:  # noqa: ANN401 -- Django's
        """Return bytes, None for nothing."""
        megabytes = super().clean(value)
        return None if megabytes is None else round(megabytes * _MEGABYTE)

    def has_changed(self, initial: Any, data: Any) -> bool:  # noqa: ANN401 -- Django's
        """Return whether other megabytes were filled in than the bytes are."""
        try:
            return bool(self.clean(data) != initial)
        except forms.ValidationError:
            return True


def field_of(name: str, schema: Schema, *, required: bool) -> forms.Field:
    """Return the field of one property of an object's schema; `required` is whether it must be given."""
    schema = _not_null(schema)
    facts = {"required": required, "help_text": schema.get("description", ""), "error_messages": _LIMITS}
    if schema.get("type") == "boolean":
        return forms.BooleanField(required=False, help_text=facts["help_text"])
    if schema.get("type") == "array":
        return LinesField(**facts)
    if "enum" in schema:
        choices = [(value, _spoken(value)) for value in schema["enum"]]
        return forms.ChoiceField(choices=choices, widget=forms.Select(attrs={"class": "input"}), **facts)
    if schema.get("type") in {"integer", "number"}:
        return _number(name, schema, facts)
    widget = forms.TextInput(attrs={"class": "input", "spellcheck": "false", "autocomplete": "off"})
    return forms.CharField(max_length=schema.get("maxLength", _WIDE), widget=widget, **facts)


def _number(name: str, schema: Schema, facts: dict[str, Any]) -> forms.Field:
    if name.endswith("_bytes"):
        return MegabytesField(min_value=0, widget=_number_input("any"), **facts)
    limits: dict[str, Any] = {"min_value": schema.get("minimum"), "max_value": schema.get("maximum")}
    if schema["type"] == "integer":
        return forms.IntegerField(**limits, widget=_number_input("1"), **facts)
    return FigureField(**limits, widget=_number_input("any"), **facts)


def _number_input(step: str) -> forms.NumberInput:
    return forms.NumberInput(attrs={"class": "input", "step": step})


def _not_null(schema: Schema) -> Schema:
    """Return the schema of a value that may also be null as that of the value."""
    choices = [it for it in schema.get("anyOf", ()) if it.get("type") != "null"]
    return {**schema, **choices[0]} if len(choices) == 1 else schema


def _spoken(value: object) -> str:
    return str(value).replace("_", " ").capitalize()
