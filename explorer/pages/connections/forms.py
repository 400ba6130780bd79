"""The form of a connection: its settings, and a field for each setting of its connector."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, cast

from django import forms
from django.conf import settings
from django.forms import BoundField

from corecube.connections import problems_of, secrets_with
from corecube.connectors.kinds import Kind, kind_named
from corecube.errors import ConfigError
from corecube.models import Compartment, Connection
from explorer.components.forms import FORM_TEXTS, ConsoleForm, SluggedForm
from explorer.wording import config_label

_MEGABYTE: Final = 2**20
_MAX_LENGTH: Final = 2000
_TEXTS: Final = FORM_TEXTS["ConnectionForm"]
Schema = Mapping[str, Any]
_CONFIG: Final = "config_"
_SECRET: Final = "secret_"  # noqa: S105 -- a prefix of field names
_DROP: Final = "drop_"
_NEW_COMPARTMENT: Final = "new_compartment"
#: Intervals of scheduled syncs, in minutes.
_INTERVALS: Final = (
    ("", "Only when started manually"),
    ("15", "Every 15 minutes"),
    ("60", "Every hour"),
    ("360", "Every 6 hours"),
    ("1440", "Every day"),
    ("10080", "Every week"),
)
#: Config fields shared by several kinds, shown in their own section.
_COMMON: Final = ("include", "exclude", "max_bytes")
#: Required config fields that the schema does not mark as required, and optional ones shown with the required ones.
_REQUIRED: Final = frozenset({("folder", "path")})
_SHOWN: Final = frozenset({("confluence", "user")})
#: Config fields with web addresses, to which a missing scheme is added.
_ADDRESSES: Final = frozenset(
    {("web", "start"), ("web", "prefixes"), ("web", "sitemaps"), ("confluence", "url"), ("s3", "endpoint")}
)
#: Config fields that say which source is read.
_PLACE: Final = ("path", "url", "start", "endpoint", "bucket", "prefix", "branch", "spaces")


class _LinesField(forms.CharField):
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


class _FigureField(forms.FloatField):
    """A number, shown without needless digits: 180 and not 180.0."""

    def prepare_value(self, value: Any) -> Any:  # noqa: ANN401 -- Django's
        """Return a number as text, entered text unchanged."""
        return f"{value:.10g}" if isinstance(value, float) else value


class _MegabytesField(forms.FloatField):
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


class _ScheduleField(forms.TypedChoiceField):
    """Minutes between syncs, None for manual syncs; a stored interval that is not offered is added."""

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401 -- Django's
        super().__init__(coerce=int, empty_value=None, required=False, choices=_INTERVALS, **kwargs)

    def offer(self, minutes: int | None) -> None:
        """Add a stored interval."""
        if minutes and str(minutes) not in dict(_INTERVALS):
            self.choices = [*_INTERVALS, (str(minutes), f"Every {minutes:,} minutes")]


def _field_of(name: str, schema: Schema, *, required: bool) -> forms.Field:
    # Without the alternative null.
    others = [it for it in schema.get("anyOf", ()) if it.get("type") != "null"]
    schema = {**schema, **others[0]} if len(others) == 1 else schema
    options: dict[str, Any] = {
        "required": required,
        "help_text": schema.get("description", ""),
        "error_messages": _TEXTS["errors"],
    }
    if schema.get("type") == "boolean":
        return forms.BooleanField(required=False, help_text=options["help_text"])
    if schema.get("type") == "array":
        return _LinesField(**options)
    if "enum" in schema:
        choices = [(value, str(value).replace("_", " ").capitalize()) for value in schema["enum"]]
        return forms.ChoiceField(choices=choices, **options)
    if schema.get("type") in {"integer", "number"}:
        if name.endswith("_bytes"):
            return _MegabytesField(min_value=0, **options)
        options |= {"min_value": schema.get("minimum"), "max_value": schema.get("maximum")}
        whole = forms.NumberInput(attrs={"step": "1"})
        is_whole = schema["type"] == "integer"
        return forms.IntegerField(widget=whole, **options) if is_whole else _FigureField(**options)
    widget = forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off"})
    return forms.CharField(max_length=schema.get("maxLength", _MAX_LENGTH), widget=widget, **options)


class ConnectionForm(SluggedForm):
    """A connection of one kind, new or stored. Entered secrets are never shown again."""

    slug = forms.SlugField(
        required=False, max_length=50, error_messages={"unique": "Another connection has this slug."}
    )
    half_life_days = _FigureField(min_value=0.01)
    sync_every_minutes = _ScheduleField()

    class Meta:  # noqa: D106 -- Django's
        model = Connection
        fields: ClassVar = [
            *("name", "slug", "compartment", "sensitivity", "trust", "source_type", "half_life_days"),
            *("freshness_basis", "language", "chunk_profile", "enrichment", "sync_every_minutes"),
        ]

    def __init__(self, data: Mapping[str, Any] | None = None, *, instance: Connection) -> None:
        super().__init__(data, instance=instance)
        self.kind: Kind = kind_named(instance.kind)
        self.stored_secrets = _stored_lengths(instance)
        self._properties = config_properties(self.kind)
        for name, schema in self._properties.items():
            added = _field_of(name, schema, required=_is_required_field(self.kind, name))
            added.label = config_label(name)
            added.help_text = _with_roots(str(added.help_text))
            added.initial = instance.config.get(name, schema.get("default"))
            self.fields[_CONFIG + name] = added
        for secret in self.kind.secrets:
            # render_value stays off: entered secrets are not sent back.
            widget = forms.PasswordInput(attrs={"autocomplete": "new-password", "spellcheck": "false"})
            self.fields[_SECRET + secret.name] = forms.CharField(
                required=False, strip=True, max_length=4000, label=secret.label, help_text=secret.help, widget=widget
            )
            if secret.name in self.stored_secrets:
                self.fields[_DROP + secret.name] = forms.BooleanField(required=False, label="Remove secret")
        for name, labels in _TEXTS["choices"].items():
            choice = self.fields[name]
            assert isinstance(choice, forms.ChoiceField)  # noqa: S101 -- a model field with choices
            choice.choices = list(labels.items())
        compartment = self.fields["compartment"]
        assert isinstance(compartment, forms.ModelChoiceField)  # noqa: S101 -- it is a foreign key's
        compartment.queryset = Compartment.objects.listed()
        compartment.empty_label = "Select a compartment"
        if self.kind.receives_documents:
            del self.fields["sync_every_minutes"]
        else:
            cast("_ScheduleField", self.fields["sync_every_minutes"]).offer(instance.sync_every_minutes)
        if not instance.pk:
            self._offer_compartment(compartment)
            if self.kind.receives_documents and data is None:
                self.fields["name"].widget.attrs["autofocus"] = True

    def _offer_compartment(self, field: "forms.ModelChoiceField[Compartment]") -> None:
        """Offer a new compartment for a new connection, and preselect the only one that there is."""
        only = list(Compartment.objects.listed().values_list("pk", flat=True)[:2])
        field.initial = only[0] if len(only) == 1 else None
        if self.data.get(_NEW_COMPARTMENT, "").strip():
            field.required = False
        self.fields[_NEW_COMPARTMENT] = forms.CharField(
            required=False, max_length=120, widget=forms.TextInput(attrs={"autocomplete": "off"})
        )

    def new_compartment_field(self) -> BoundField | None:
        """Return the field of a new compartment; None for a stored connection."""
        return self[_NEW_COMPARTMENT] if _NEW_COMPARTMENT in self.fields else None

    @property
    def new_compartment(self) -> str:
        """The name of a compartment to add with the connection; empty for none."""
        return str(self.cleaned_data.get(_NEW_COMPARTMENT, ""))

    def check_source_only(self) -> None:
        """Keep only the errors that stand against a test of the source."""
        for name in [name for name in self.errors if name in self.fields and not _is_source(name)]:
            del self.errors[name]

    @property
    def secrets(self) -> dict[str, str]:
        """The entered secrets; an empty value removes the stored one."""
        names = [secret.name for secret in self.kind.secrets]
        given = {name: self.cleaned_data.get(_SECRET + name, "") for name in names}
        return {name: value for name, value in given.items() if value or self.cleaned_data.get(_DROP + name)}

    def clean(self) -> dict[str, Any]:
        """Fill in the slug and the config."""
        values = super().clean()
        # Empty fields are left to their defaults.
        given = {name: self._with_scheme(name, values.get(_CONFIG + name)) for name in self._properties}
        self.instance.config = {name: value for name, value in given.items() if value not in (None, "", [])}
        return values

    def _with_scheme(self, name: str, value: Any) -> Any:  # noqa: ANN401 -- a config value
        if (self.kind.name, name) not in _ADDRESSES:
            return value
        return [_with_https(it) for it in value] if isinstance(value, list) else _with_https(value or "")

    def _post_clean(self) -> None:
        """Also check the config, the secrets and the uniqueness of the slug, with errors at their fields."""
        super()._post_clean()  # type: ignore[misc]  # Django's, and not in the stubs
        if any(name.startswith(_CONFIG) for name in self.errors):
            return
        for name, message in problems_of(self.instance, self.secrets).items():
            field = next((prefix + name for prefix in (_CONFIG, _SECRET, "") if prefix + name in self.fields), None)
            is_known = field in self.errors or (field == "slug" and "name" in self.errors)
            is_added = field == "compartment" and bool(self.new_compartment)
            if field is None or not (is_known or is_added):
                self.add_error(field, message)

    def same_source(self) -> list[str]:
        """Return the names of other connections that read the same source."""
        own = _place_of(self.instance)
        others = Connection.objects.listed().filter(kind=self.kind.name).exclude(pk=self.instance.pk).order_by("name")
        return [it.name for it in others if own and _place_of(it) == own]

    def source(self) -> list[BoundField]:
        """Return the config fields of this kind that are not under Advanced."""
        return [it for it in self._config_fields() if self._is_shown(it)]

    def _is_shown(self, field: BoundField) -> bool:
        return field.field.required or (self.kind.name, field.name.removeprefix(_CONFIG)) in _SHOWN

    def source_options(self) -> list[BoundField]:
        """Return the other fields of the source, with the slug first."""
        return [self["slug"], *(it for it in self._config_fields() if not self._is_shown(it))]

    def has_option_errors(self) -> bool:
        """Whether a field under Advanced of the source has an error."""
        return any(it.errors for it in (*self.source_options(), *self.filters()))

    def has_ranking_errors(self) -> bool:
        """Whether a field under Advanced of the schedule has an error."""
        names = (name for group in _TEXTS["groups"] for name in group["fields"])
        return any(name in self.errors for name in names)

    def _config_fields(self) -> list[BoundField]:
        return [self[_CONFIG + name] for name in self._properties if name not in _COMMON]

    def filters(self) -> list[BoundField]:
        """Return the fields that select the files to include."""
        return [self[_CONFIG + name] for name in _COMMON if name in self._properties]

    def secret_fields(self) -> Iterator[dict[str, object]]:
        """Yield the field of each secret with the length of the stored value, 0 for none."""
        for secret in self.kind.secrets:
            drop = self[_DROP + secret.name] if _DROP + secret.name in self.fields else None
            length = self.stored_secrets.get(secret.name, 0)
            yield {"field": self[_SECRET + secret.name], "length": length, "drop": drop}


class DeleteConnectionForm(ConsoleForm):
    """Confirms a deletion by the name."""

    name = forms.CharField(max_length=120, widget=forms.TextInput(attrs={"autocomplete": "off"}))

    def __init__(self, *args: Any, expected: str, **kwargs: Any) -> None:  # noqa: ANN401 -- Django's
        super().__init__(*args, **kwargs)
        self._expected = expected

    def clean_name(self) -> str:
        """Check that the name is that of the connection."""
        name: str = self.cleaned_data["name"]
        if name != self._expected.strip():
            raise forms.ValidationError(f"The name does not match. Type {self._expected} to confirm.")
        return name


def config_properties(kind: Kind) -> dict[str, Mapping[str, Any]]:
    """Return the schema of each config field: required ones first, common ones last."""
    properties: dict[str, Mapping[str, Any]] = kind.model().model_json_schema()["properties"]
    order = sorted(properties, key=lambda name: (name in _COMMON, not _is_required_field(kind, name)))
    return {name: properties[name] for name in order}


def _with_roots(text: str) -> str:
    """Return a help text with the allowed folders in the place of their setting."""
    roots = ", ".join(map(str, settings.CORECUBE_FOLDER_ROOTS))
    return text.replace("below one of CORECUBE_FOLDER_ROOTS", f"below one of these folders: {roots}") if roots else text


def _with_https(address: str) -> str:
    return address if not address or "://" in address else f"https://{address}"


def _place_of(connection: Connection) -> dict[str, str]:
    config = connection.config if isinstance(connection.config, dict) else {}
    return {name: str(config[name]).rstrip("/") for name in _PLACE if config.get(name)}


def _is_source(name: str) -> bool:
    return name in {"name", "slug"} or name.startswith((_CONFIG, _SECRET, _DROP))


def _is_required_field(kind: Kind, name: str) -> bool:
    return (kind.name, name) in _REQUIRED or kind.model().model_fields[name].is_required()


def _stored_lengths(connection: Connection) -> dict[str, int]:
    """Return the length of each stored secret, by name; none if they cannot be decrypted."""
    try:
        return {name: len(value) for name, value in secrets_with(connection, {}).items()}
    except ConfigError:
        return {}
