"""The section sets of an installation: those that CoreCube comes with, as they were edited, and its own.

Every change is one transaction and one event of the audit log. Callers say which content they edited, so that nobody
overwrites what somebody else has changed meanwhile.
"""

import hashlib
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from django.db import IntegrityError, transaction

from corecube import audit
from corecube.errors import ConflictError
from corecube.models import User
from corecube.sanitise import storable
from retrieval.errors import TunablesError, UnknownSectionError, UnknownSectionSetError, VersionConflictError
from retrieval.models import StoredSectionSet
from retrieval.presets.consolidated.evidence.section_reading import SHIPPED, read_section_set, shipped
from retrieval.presets.consolidated.evidence.section_state import PLAIN
from retrieval.presets.consolidated.evidence.sections import Section, SectionSet

logger = logging.getLogger(__name__)

#: The section set of a request that names none: it fits a report about anything.
DEFAULT_SECTION_SET: Final = "report"

_CHANGED: Final = "Another user has changed the section set. Check the changes before you save."


def section_sets() -> tuple[SectionSet, ...]:
    """Return the shipped section sets as they were edited, and behind them the installation's own by name."""
    stored = {row.name: row for row in StoredSectionSet.objects.order_by("name")}
    coming = tuple(_edited(stored.pop(name, None)) or shipped(name) for name in SHIPPED)
    own = (_edited(row) for row in stored.values())
    return (*coming, *(it for it in own if it is not None))


def section_set_named(name: str) -> SectionSet:
    """Return the section set of that name; raise UnknownSectionSetError."""
    row = StoredSectionSet.objects.filter(name=storable(name)).first()
    found = _content(row, name)
    if found is None:
        raise UnknownSectionSetError
    return found


def section_named(section_set: SectionSet, name: str) -> Section:
    """Return the section of that name; raise UnknownSectionError."""
    found = section_set.section(name)
    if found is None:
        raise UnknownSectionError
    return found


def is_shipped(name: str) -> bool:
    """Return whether CoreCube comes with a section set of that name."""
    return name in SHIPPED


def is_edited(section_set: SectionSet) -> bool:
    """Return whether it is a shipped one that was changed here."""
    return is_shipped(section_set.name) and section_set != shipped(section_set.name)


def fingerprint(section_set: SectionSet) -> str:
    """Name the set's content: another one after each edit."""
    content = json.dumps(section_set.to_mapping(), sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def save_section_set(written: object, *, actor: User, replaces: str = "") -> SectionSet:
    """Save a section set that a mapping describes, under its name, and return it.

    `replaces` is the fingerprint of the set that was edited, empty for a new one; VersionConflictError is raised when
    there is another one of that name by now, TunablesError for what does not fit, by dotted names.
    """
    wanted = _own(read_section_set(written))
    with _one_change(wanted.name) as row:
        before = _content(row, wanted.name)
        if replaces != (fingerprint(before) if before else ""):
            raise VersionConflictError(_CHANGED)
        _keep(wanted, row, actor=actor)
        audit.record("section_set.saved", actor=actor, subject=wanted.name, **_changes(before, wanted))
    return wanted


def copy_section_set(name: str, *, new_name: str, title: str, actor: User) -> SectionSet:
    """Save a copy of a section set under another name and return it.

    Raises UnknownSectionSetError, ConflictError for a name that is taken, and TunablesError for one that cannot be any.
    """
    source = section_set_named(name)
    copy = _own(read_section_set({**source.to_mapping(), "name": new_name, "title": title}))
    with _one_change(copy.name) as row:
        if row is not None or is_shipped(copy.name):
            raise ConflictError("A section set with this name already exists.")
        _keep(copy, row, actor=actor)
        audit.record("section_set.copied", actor=actor, subject=copy.name, source=source.name)
    return copy


def delete_section_set(name: str, *, actor: User) -> None:
    """Delete one of the installation's own; raise UnknownSectionSetError, ConflictError for one that is shipped."""
    if is_shipped(name):
        raise ConflictError("A shipped section set cannot be deleted, only reset.")
    with _one_change(name) as row:
        if row is None:
            raise UnknownSectionSetError
        row.delete()
        audit.record("section_set.deleted", actor=actor, subject=row.name)


def reset_section_set(name: str, *, actor: User) -> SectionSet:
    """Put a shipped section set back to how it came, and return it; raise UnknownSectionSetError for any other.

    One that was not edited stays as it is, and no event is written.
    """
    if not is_shipped(name):
        raise UnknownSectionSetError("Only a shipped section set can be reset.")
    with _one_change(name) as row:
        if row is not None:
            row.delete()
            audit.record("section_set.reset", actor=actor, subject=name)
    return shipped(name)


def _edited(row: StoredSectionSet | None) -> SectionSet | None:
    if row is None:
        return None
    try:
        return read_section_set(row.written)
    except TunablesError as error:
        logger.warning("section_set.unfit name=%s problems=%s", row.name, ",".join(error.problems))
        return None


def _content(row: StoredSectionSet | None, name: str) -> SectionSet | None:
    return _edited(row) or (shipped(name) if is_shipped(name) else None)


def _keep(wanted: SectionSet, row: StoredSectionSet | None, *, actor: User) -> None:
    if is_shipped(wanted.name) and wanted == shipped(wanted.name):
        if row is not None:
            row.delete()
        return
    row = row or StoredSectionSet(name=wanted.name)
    row.written, row.changed_by = wanted.to_mapping(), actor
    row.save()


def _changes(before: SectionSet | None, after: SectionSet) -> dict[str, object]:
    old = {it.name: it for it in before.sections} if before else {}
    new = {it.name: it for it in after.sections}
    changed = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return {"sections": changed, "fingerprint": fingerprint(after)}


def _own(section_set: SectionSet) -> SectionSet:
    if section_set.name == PLAIN:
        raise TunablesError({"name": f"must not be {PLAIN!r}: this name is reserved"})
    sections = (
        replace(it, title=_text(f"{it.name}.title", it.title), template=_text(f"{it.name}.template", it.template))
        for it in section_set.sections
    )
    return replace(section_set, sections=tuple(sections), title=_text("title", section_set.title))


def _text(name: str, text: str) -> str:
    clean = storable(text).strip()
    if not clean:
        raise TunablesError({name: "must not be empty"})
    return clean


@contextmanager
def _one_change(name: str) -> Iterator[StoredSectionSet | None]:
    """Lock the stored set of a name, None where there is none, for one transaction.

    Raises VersionConflictError when one came into being meanwhile, which the lock cannot hold off.
    """
    try:
        with transaction.atomic():
            yield StoredSectionSet.objects.select_for_update().filter(name=storable(name)).first()
    except IntegrityError as error:
        raise VersionConflictError(_CHANGED) from error
