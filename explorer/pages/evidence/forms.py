"""The forms of section sets: a section's policy, the shared settings of a set, and a copy."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from django import forms

from corecube.errors import ConfigError
from explorer.components.forms import ConsoleForm, number_field
from retrieval.presets.consolidated.evidence.sections import NUMBERS, TYPE_LISTS, Section, SectionSet
from retrieval.text.traits import HINTS

_MAX_FLOOR: Final = 200
#: A valid section, in which a single value is validated.
_FITTING: Final[Mapping[str, Any]] = {"name": "probe", "title": "Probe", "template": "probe"}
ROLES: Final = {"": "none", "required": "required", "optional": "optional", "never_recovered": "never recovered"}


class _PartForm(ConsoleForm):
    """A form that changes a part of a set."""

    #: By the first part of a problem's name, the field that shows it.
    problem_fields: ClassVar[Mapping[str, str]] = {}
    is_stale = False  #: Whether the set changed since the form was rendered.

    def add_problems(self, problems: Mapping[str, str]) -> None:
        """Add problems of the set, by dotted names, as errors of their fields, else of the form."""
        for name, problem in problems.items():
            last = name.rsplit(".", 1)[-1]
            field = last if last in self.fields else self.problem_fields.get(name.split(".", 1)[0])
            self.add_error(field, f"{name.replace('_', ' ')} {problem}.")


class SectionForm(_PartForm):
    """A section: its query, its settings with their bounds, and the role of each source type."""

    name = forms.CharField(
        max_length=60, widget=forms.TextInput(attrs={"autocapitalize": "none", "autocomplete": "off"})
    )
    title = forms.CharField(max_length=120)
    template = forms.CharField(max_length=500, widget=forms.Textarea(attrs={"rows": 3}))
    hint = forms.ChoiceField(required=False, choices=[("", "any"), *((name, name) for name in sorted(HINTS))])

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
            role = forms.ChoiceField(required=False, label=f"Role of {source_type}", choices=list(ROLES.items()))
            self.fields.update(
                {
                    f"role.{source_type}": role,
                    f"quantity_floors.{source_type}": _floor(f"Minimum chunks of {source_type} in the pool"),
                    f"survivor_floors.{source_type}": _floor(f"Minimum chunks of {source_type} after the cut"),
                }
            )

    @property
    def source_types(self) -> tuple[str, ...]:
        """The source types of its set."""
        return self.section_set.precedence

    @property
    def query(self) -> str:
        """The query about the test subject; empty for an invalid template."""
        if not self.is_bound or "template" in self.errors:
            return ""
        tried = Section(**{**_FITTING, "template": self.cleaned_data["template"]})
        return tried.query(str(self.data.get("about", "")))

    @property
    def values(self) -> dict[str, Any]:
        """The section's fields as `SectionSet.to_mapping` writes them."""
        name = self.section.name if self.section else self.cleaned_data.get("name", "")
        texts = {it: self.cleaned_data.get(it, "") for it in ("title", "template", "hint")}
        return {"name": name, **texts, **self._numbers, **self._types, **self._floors}

    @property
    def _numbers(self) -> dict[str, float]:
        return {name: self.cleaned_data[name] for name in NUMBERS if self.cleaned_data.get(name) is not None}

    @property
    def _types(self) -> dict[str, list[str]]:
        """The source types by role, in the order of the stored section, new ones last."""
        before = {name: getattr(self.section, name) if self.section else () for name in TYPE_LISTS}
        chosen = {it: self.cleaned_data.get(f"role.{it}", "") for it in self.source_types}
        return {
            role: [it for it in dict.fromkeys((*before[role], *self.source_types)) if chosen.get(it) == role]
            for role in TYPE_LISTS
        }

    @property
    def _floors(self) -> dict[str, dict[str, int]]:
        return {
            name: {it: count for it in self.source_types if (count := self.cleaned_data.get(f"{name}.{it}"))}
            for name in ("quantity_floors", "survivor_floors")
        }

    def clean(self) -> None:
        """Validate by the section's rules what depends on several fields."""
        for name in ("name", "template"):
            if value := self.cleaned_data.get(name):
                try:
                    Section(**{**_FITTING, name: value})
                except ConfigError as error:
                    self.add_error(name, str(error))
        for name, problem in Section(**_FITTING).problems(self._numbers).items():
            if name not in self.errors:
                self.add_error(name, f"It {problem}.")
        self._check_floors()

    def _check_floors(self) -> None:
        """Refuse floors of types that are not required, and sums above the number of chunks read or retained."""
        required = self._types["required"]
        for name, bound in (("quantity_floors", "cap"), ("survivor_floors", "keep")):
            floors = self._floors[name]
            for it in floors.keys() - set(required):
                self.add_error(f"{name}.{it}", "Only a required source type can have a minimum.")
            limit = self._numbers.get(bound)
            if limit is not None and sum(floors.values()) > limit:
                self.add_error(f"{name}.{next(iter(floors))}", f"The sum must not exceed {bound}.")


class SectionSetForm(_PartForm):
    """The shared settings of a set's sections: title, source types and defaults."""

    problem_fields: ClassVar = {"title": "title", "source_types": "source_types", "defaults": "never_recovered"}

    title = forms.CharField(max_length=120)
    source_types = forms.CharField(max_length=4000, widget=forms.Textarea(attrs={"rows": 10, "spellcheck": "false"}))
    never_recovered = forms.CharField(required=False, max_length=1000)

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
        """The set's fields as `SectionSet.to_mapping` writes them, without name and sections."""
        given = {name: self.cleaned_data[name] for name in NUMBERS if self.cleaned_data.get(name) is not None}
        parts = (line.partition(":") for line in self.cleaned_data["source_types"].splitlines() if line)
        return {
            "title": self.cleaned_data["title"],
            "source_types": [{"name": name.strip(), "also": _names(also)} for name, _, also in parts],
            "defaults": {**given, "never_recovered": _names(self.cleaned_data["never_recovered"])},
        }


class CopyForm(ConsoleForm):
    """The name and the title of a copy."""

    def __init__(self, data: Mapping[str, Any] | None = None, **options: Any) -> None:  # noqa: ANN401 -- Django's
        # Its page also has the form of the set.
        super().__init__(data, auto_id="copy_%s", **options)

    new_name = forms.CharField(
        max_length=60, widget=forms.TextInput(attrs={"autocapitalize": "none", "autocomplete": "off"})
    )
    title = forms.CharField(max_length=120)


def _floor(label: str) -> forms.IntegerField:
    return forms.IntegerField(required=False, min_value=1, max_value=_MAX_FLOOR, label=label)


def _initial(section_set: SectionSet, section: Section | None) -> Iterator[tuple[str, Any]]:
    """Yield the initial values of a section; a new one has the defaults of its set."""
    defaults = section_set.defaults.values
    for facts in Section.declared():
        yield facts.name, getattr(section, facts.name) if section else defaults.get(facts.name, facts.default)
    for name in ("title", "template", "hint"):
        yield name, getattr(section, name) if section else ("{subject} " if name == "template" else "")
    for role in TYPE_LISTS:
        types: Any = getattr(section, role) if section else defaults[role]
        yield from ((f"role.{it}", role) for it in types)
    if section:
        for name in ("quantity_floors", "survivor_floors"):
            yield from ((f"{name}.{it}", count) for it, count in getattr(section, name).items())


def _names(text: str) -> list[str]:
    return [it.strip() for it in text.split(",") if it.strip()]
