"""The form of a connection: its own settings, and a field for everything that its connector's config declares."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from django import forms
from django.forms import BoundField
from django.utils.text import slugify

from corecube.connections import problems_of, secrets_with
from corecube.connectors.kinds import Kind, Secret, kind_named
from corecube.errors import ConfigError
from corecube.models import Connection
from explorer.components.edit_form import EditForm
from explorer.pages.connections.schema_fields import FigureField, field_of
from explorer.wording.configuration import config_label

_CONFIG: Final = "config_"
_SECRET: Final = "secret_"  # noqa: S105 -- the beginning of fields' names
_DROP: Final = "drop_"
#: Fields of every kind's config; they stand apart from its own.
_COMMON: Final = ("include", "exclude", "max_bytes")
#: Fields that a config needs although its schema, which forgives, does not say so.
_NEEDED: Final = frozenset({("folder", "path")})
_GROUPS: Final = (
    ("Who may see it", "Grants on the compartment decide, up to the sensitivity.", ("compartment", "sensitivity")),
    (
        "How far it counts",
        "Trust settles ties between sources; freshness fades with the half-life.",
        ("trust", "source_type", "half_life_days", "freshness_basis"),
    ),
    ("How it is read", "", ("language", "chunk_profile", "enrichment")),
    ("When it is synced", "", ("sync_every_minutes",)),
)


class ConnectionForm(EditForm, forms.ModelForm):  # type: ignore[type-arg]  # generic only in the stubs
    """A connection of one kind, new or stored. What is filled in for a secret is never shown again."""

    slug = forms.SlugField(
        required=False,
        max_length=50,
        help_text="How programs and addresses name it; empty makes one from the name.",
        error_messages={"unique": "Another connection has this slug."},
    )
    half_life_days = FigureField(
        min_value=0.01,
        label="Half-life, days",
        help_text="Days after which freshness has halved.",
        widget=forms.NumberInput(attrs={"class": "input", "step": "any"}),
    )

    class Meta:  # noqa: D106 -- Django's
        model = Connection
        fields: ClassVar = [
            *("name", "slug", "compartment", "sensitivity", "trust", "source_type", "half_life_days"),
            *("freshness_basis", "language", "chunk_profile", "enrichment", "sync_every_minutes"),
        ]
        labels: ClassVar = {"sync_every_minutes": "Sync every, minutes"}

    def __init__(self, data: Mapping[str, Any] | None = None, *, instance: Connection) -> None:
        super().__init__(data, instance=instance)
        self.kind: Kind = kind_named(instance.kind)
        self.stored_secrets = stored_lengths(instance)
        self._properties = config_properties(self.kind)
        for name, schema in self._properties.items():
            self._add_config(name, schema, instance.config)
        for secret in self.kind.secrets:
            self._add_secret(secret)
        for field in self.fields.values():
            field.widget.attrs.setdefault("class", "check" if isinstance(field, forms.BooleanField) else "input")
        compartment = self.fields["compartment"]
        assert isinstance(compartment, forms.ModelChoiceField)  # noqa: S101 -- it is a foreign key's
        compartment.empty_label = "Choose one"

    def _add_config(self, name: str, schema: Mapping[str, Any], config: Mapping[str, Any]) -> None:
        field = field_of(name, schema, required=is_needed(self.kind, name))
        field.label = config_label(name)
        field.initial = config.get(name, schema.get("default"))
        self.fields[_CONFIG + name] = field

    def _add_secret(self, secret: Secret) -> None:
        # render_value stays off: what was typed is not sent back.
        widget = forms.PasswordInput(attrs={"class": "input", "autocomplete": "new-password", "spellcheck": "false"})
        self.fields[_SECRET + secret.name] = forms.CharField(
            required=False, strip=True, max_length=4000, label=secret.label, help_text=secret.help, widget=widget
        )
        if secret.name in self.stored_secrets:
            self.fields[_DROP + secret.name] = forms.BooleanField(required=False, label="Remove it")

    @property
    def secrets(self) -> dict[str, str]:
        """The secrets that were filled in, and those to be removed as empty ones."""
        names = [secret.name for secret in self.kind.secrets]
        given = {name: self.cleaned_data.get(_SECRET + name, "") for name in names}
        return {name: value for name, value in given.items() if value or self.cleaned_data.get(_DROP + name)}

    def clean(self) -> dict[str, Any]:
        """Check the whole; what is wrong with the config or a secret is said at its field."""
        values = {**(super().clean() or {})}
        values["slug"] = values.get("slug") or _slug(values.get("name", ""))
        if not values["slug"] and "name" not in self.errors and "slug" not in self.errors:
            self.add_error("name", "The name needs a letter from a to z or a digit, or the slug has to be given.")
        self.instance.config = self._config(values)
        return values

    def _post_clean(self) -> None:
        """Check what Django's own checks of the row leave: the config, the secrets, the slug's uniqueness."""
        super()._post_clean()  # type: ignore[misc]  # Django's, and not in the stubs
        if any(name.startswith(_CONFIG) for name in self.errors):
            return
        for name, words in problems_of(self.instance, self.secrets).items():
            place = self._place(name)
            is_said = place in self.errors or (place == "slug" and "name" in self.errors)
            if place is None or not is_said:
                self.add_error(place, words)

    def _config(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the config as it was filled in; what was left empty is left to its default."""
        given = {name: values.get(_CONFIG + name) for name in self._properties}
        return {name: value for name, value in given.items() if value not in (None, "", [])}

    def _place(self, name: str) -> str | None:
        return next((prefix + name for prefix in (_CONFIG, _SECRET, "") if prefix + name in self.fields), None)

    def identity(self) -> list[BoundField]:
        """Return the fields that name it."""
        return [self["name"], self["slug"]]

    def source(self) -> list[BoundField]:
        """Return the fields of this kind's own config."""
        return [self[_CONFIG + name] for name in self._properties if name not in _COMMON]

    def filters(self) -> list[BoundField]:
        """Return the fields that say what is taken in."""
        return [self[_CONFIG + name] for name in _COMMON if name in self._properties]

    def secret_fields(self) -> Iterator[dict[str, object]]:
        """Yield each secret's field with the length of the one that is stored, 0 for none."""
        for secret in self.kind.secrets:
            drop = self[_DROP + secret.name] if _DROP + secret.name in self.fields else None
            length = self.stored_secrets.get(secret.name, 0)
            yield {"field": self[_SECRET + secret.name], "length": length, "drop": drop}

    def groups(self) -> Iterator[dict[str, object]]:
        """Yield the settings that every connection has, in groups."""
        for heading, note, names in _GROUPS:
            yield {"heading": heading, "note": note, "fields": [self[name] for name in names]}


class DeleteConnectionForm(forms.Form):
    """Asks for the slug of what is to be deleted."""

    slug = forms.CharField(
        max_length=50, label="Slug", widget=forms.TextInput(attrs={"class": "input mono", "autocomplete": "off"})
    )

    def __init__(self, *args: Any, expected: str, **kwargs: Any) -> None:  # noqa: ANN401 -- Django's
        super().__init__(*args, **kwargs)
        self._expected = expected

    def clean_slug(self) -> str:
        """Return the slug; it must be the connection's."""
        slug: str = self.cleaned_data["slug"]
        if slug != self._expected:
            raise forms.ValidationError(f"This is not its slug. Type {self._expected} to delete it.")
        return slug


def config_properties(kind: Kind) -> dict[str, Mapping[str, Any]]:
    """Return the schema of each field of a kind's config, those first that must be filled in, the common ones last."""
    properties: dict[str, Mapping[str, Any]] = kind.model().model_json_schema()["properties"]
    order = sorted(properties, key=lambda name: (name in _COMMON, not is_needed(kind, name)))
    return {name: properties[name] for name in order}


def is_needed(kind: Kind, name: str) -> bool:
    """Return whether a field of a kind's config must be filled in."""
    return (kind.name, name) in _NEEDED or kind.model().model_fields[name].is_required()


def stored_lengths(connection: Connection) -> dict[str, int]:
    """Return the length of each stored secret, by name; none where they cannot be opened any more."""
    try:
        return {name: len(value) for name, value in secrets_with(connection, {}).items()}
    except ConfigError:
        return {}


def _slug(name: str) -> str:
    """Return a name as a slug of at most 50 characters; empty when nothing of it can stand in one."""
    return slugify(name)[:50].strip("-_")
