"""The forms of section sets: a section's policy, what its set has in common, and a copy."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from django import forms

from corecube.errors import ConfigError
from explorer.components.tunables_form import number_field
from retrieval.presets.consolidated.evidence.section_set import SectionSet
from retrieval.presets.consolidated.evidence.sections import NUMBERS, TYPE_LISTS, Section
from retrieval.text.hints import HINTS

_INPUT: Final = {"class": "input"}
_MAX_FLOOR: Final = 200
#: A section that nothing is wrong with; one value of another is tried in it.
_FITTING: Final[Mapping[str, Any]] = {"name": "probe", "title": "Probe", "template": "probe"}
ROLES: Final = {
    "": "none",
    "required": "required",
    "optional": "optional",
    "never_recovered": "never recovered",
}


class SectionForm(forms.Form):
    """A section: its query, its numbers with their bounds, and what it requires of each source type."""

    name = forms.CharField(
        max_length=60,
        label="Name",
        help_text="Lowercase letters, digits and _. The API uses this name; it cannot be changed later.",
        widget=forms.TextInput(attrs={**_INPUT, "autocapitalize": "none", "autocomplete": "off"}),
    )
    title = forms.CharField(max_length=120, label="Title", widget=forms.TextInput(attrs=_INPUT))
    template = forms.CharField(
        max_length=500,
        label="Query",
        help_text="{subject} is replaced with the subject of the report.",
        widget=forms.Textarea(attrs={**_INPUT, "rows": 3}),
    )
    hint = forms.ChoiceField(
        required=False,
        label="Content",
        choices=[("", "any"), *((name, name) for name in sorted(HINTS))],
        help_text="Only chunks with this kind of content. If there are too few, the search is repeated without it.",
        widget=forms.Select(attrs=_INPUT),
    )

    def __init__(
        self, data: Mapping[str, Any] | None = None, *, section_set: SectionSet, section: Section | None
    ) -> None:
        self.section_set, self.section = section_set, section
        super().__init__(data, initial=dict(_initial(section_set, section)))
        if section is not None:
            del self.fields["name"]
        for facts in Section.declared():
            self.fields[facts.name] = number_field(facts)
        for source_type in self.source_types:
            self.fields.update(_type_fields(source_type))

    @property
    def source_types(self) -> tuple[str, ...]:
        """The source types of its set."""
        return self.section_set.precedence

    @property
    def query(self) -> str:
        """The query about the subject that was sent to try it with; empty for a template that does not fit."""
        if not self.is_bound or "template" in self.errors:
            return ""
        tried = Section(**{**_FITTING, "template": self.cleaned_data["template"]})
        return tried.query(str(self.data.get("about", "")))

    @property
    def values(self) -> dict[str, Any]:
        """The section's fields as `SectionSet.to_mapping` writes them."""
        return {**self._texts, **self._numbers, **self._types, **self._floors}

    @property
    def _texts(self) -> dict[str, str]:
        name = self.section.name if self.section else self.cleaned_data.get("name", "")
        texts = {it: self.cleaned_data.get(it, "") for it in ("title", "template", "hint")}
        return {"name": name, **texts}

    @property
    def _numbers(self) -> dict[str, float]:
        return {name: self.cleaned_data[name] for name in NUMBERS if self.cleaned_data.get(name) is not None}

    @property
    def _types(self) -> dict[str, list[str]]:
        """The source types by their role, in the order in which the section had them, new ones behind."""
        before = {name: getattr(self.section, name) if self.section else () for name in TYPE_LISTS}
        chosen = {it: self.cleaned_data.get(f"role.{it}", "") for it in self.source_types}
        return {
            role: [it for it in dict.fromkeys((*before[role], *self.source_types)) if chosen.get(it) == role]
            for role in TYPE_LISTS
        }

    @property
    def _floors(self) -> dict[str, dict[str, int]]:
        return {name: dict(self._floors_of(name)) for name in ("quantity_floors", "survivor_floors")}

    def _floors_of(self, name: str) -> Iterator[tuple[str, int]]:
        for it in self.source_types:
            if count := self.cleaned_data.get(f"{name}.{it}"):
                yield it, count

    def clean(self) -> None:
        """Check by the section's own rules what no field can know alone, each at its field."""
        for name in ("name", "template"):
            if self.cleaned_data.get(name):
                self._try(name, {name: self.cleaned_data[name]})
        for name, problem in Section(**_FITTING).problems(self._numbers).items():
            if name not in self.errors:
                self.add_error(name, f"It {problem}.")
        self._check_floors()

    def _check_floors(self) -> None:
        """Refuse floors of what is not required, and more of them than are read or kept."""
        required = self._types["required"]
        for name, bound in (("quantity_floors", "cap"), ("survivor_floors", "keep")):
            floors = self._floors[name]
            for it in floors.keys() - set(required):
                self.add_error(f"{name}.{it}", "Only a required source type can have a minimum.")
            limit = self._numbers.get(bound)
            if limit is not None and sum(floors.values()) > limit:
                self.add_error(f"{name}.{next(iter(floors))}", f"The sum must not exceed {bound}.")

    def _try(self, name: str, value: Mapping[str, Any]) -> None:
        try:
            Section(**{**_FITTING, **value})
        except ConfigError as error:
            self.add_error(name, str(error))


class SectionSetForm(forms.Form):
    """What the sections of a set have in common: its title, its source types and its defaults."""

    title = forms.CharField(max_length=120, label="Title", widget=forms.TextInput(attrs=_INPUT))
    source_types = forms.CharField(
        max_length=4000,
        label="Source types",
        help_text="One per line, highest precedence first. After a colon, types that count as the same: excel: csv",
        widget=forms.Textarea(attrs={**_INPUT, "rows": 10, "spellcheck": "false"}),
    )
    never_recovered = forms.CharField(
        required=False,
        max_length=1000,
        label="Never recovered",
        help_text="Source types that sections do not recover unless they set otherwise. Separate with commas.",
        widget=forms.TextInput(attrs=_INPUT),
    )

    def __init__(self, data: Mapping[str, Any] | None = None, *, section_set: SectionSet) -> None:
        defaults = section_set.defaults
        lines = (": ".join(filter(None, (it.name, ", ".join(it.also)))) for it in section_set.source_types)
        initial = {
            "title": section_set.title,
            "source_types": "\n".join(lines),
            "never_recovered": ", ".join(defaults.never_recovered),
            **defaults.numbers,
        }
        super().__init__(data, initial=initial)
        for facts in Section.declared():
            self.fields[facts.name] = number_field(facts)
            self.fields[facts.name].required = False

    @property
    def values(self) -> dict[str, Any]:
        """What it says, as `SectionSet.to_mapping` writes it, without name and sections."""
        given = {name: self.cleaned_data[name] for name in NUMBERS if self.cleaned_data.get(name) is not None}
        return {
            "title": self.cleaned_data["title"],
            "source_types": [_source_type(line) for line in self.cleaned_data["source_types"].splitlines() if line],
            "defaults": {**given, "never_recovered": _names(self.cleaned_data["never_recovered"])},
        }

    def told(self, problems: Mapping[str, str]) -> None:
        """Put what is wrong with the set at the fields that it is about."""
        tell(self, problems, {"title": "title", "source_types": "source_types", "defaults": "never_recovered"})


class CopyForm(forms.Form):
    """The name and the title of a copy."""

    def __init__(self, data: Mapping[str, Any] | None = None, **options: Any) -> None:  # noqa: ANN401 -- Django's
        # It stands on one page with the form of its set.
        super().__init__(data, auto_id="copy_%s", **options)

    new_name = forms.CharField(
        max_length=60,
        label="Name",
        help_text="Lowercase letters, digits and _.",
        widget=forms.TextInput(attrs={**_INPUT, "autocapitalize": "none", "autocomplete": "off"}),
    )
    title = forms.CharField(max_length=120, label="Title", widget=forms.TextInput(attrs=_INPUT))


def tell(form: forms.Form, problems: Mapping[str, str], fields: Mapping[str, str]) -> None:
    """Put problems, by dotted names, at the fields whose beginning `fields` names; the others above the form."""
    for name, problem in problems.items():
        last = name.rsplit(".", 1)[-1]
        field = last if last in form.fields else fields.get(name.split(".", 1)[0])
        form.add_error(field, f"{name.replace('_', ' ')} {problem}.")


def _type_fields(source_type: str) -> dict[str, forms.Field]:
    """Return a source type's role in a section, and its two floors."""
    role = forms.ChoiceField(
        required=False,
        label=f"Role of {source_type}",
        choices=list(ROLES.items()),
        widget=forms.Select(attrs=_INPUT),
    )
    return {
        f"role.{source_type}": role,
        f"quantity_floors.{source_type}": _floor(f"Minimum chunks of {source_type} in the pool"),
        f"survivor_floors.{source_type}": _floor(f"Minimum chunks of {source_type} after the cut"),
    }


def _floor(label: str) -> forms.IntegerField:
    widget = forms.NumberInput(attrs=_INPUT)
    return forms.IntegerField(required=False, min_value=1, max_value=_MAX_FLOOR, label=label, widget=widget)


def _initial(section_set: SectionSet, section: Section | None) -> Iterator[tuple[str, Any]]:
    """Yield a section's fields; of a new one those that its set's defaults give."""
    defaults = section_set.defaults.values
    for facts in Section.declared():
        yield facts.name, getattr(section, facts.name) if section else defaults.get(facts.name, facts.default)
    for name in ("title", "template", "hint"):
        yield name, getattr(section, name) if section else ("{subject} " if name == "template" else "")
    for role in TYPE_LISTS:
        types: Any = getattr(section, role) if section else defaults[role]
        yield from ((f"role.{it}", role) for it in types)
    if section:
        yield from _floors("quantity_floors", section.quantity_floors)
        yield from _floors("survivor_floors", section.survivor_floors)


def _floors(name: str, floors: Mapping[str, int]) -> Iterable[tuple[str, int]]:
    return ((f"{name}.{it}", count) for it, count in floors.items())


def _source_type(line: str) -> dict[str, Any]:
    name, _, also = line.partition(":")
    return {"name": name.strip(), "also": _names(also)}


def _names(text: str) -> list[str]:
    return [it.strip() for it in text.split(",") if it.strip()]
