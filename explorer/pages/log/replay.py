"""Running a logged search again: its address in the Explorer, what the Explorer ignores, what changed since."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.db.models import Q
from django.urls import reverse

from corecube.access import Principal, ScopeRequest, scope_for
from corecube.errors import CoreCubeError
from corecube.models import Connection, User
from corecube.scope import AccessScope
from explorer import wording
from explorer.components.preset_numbers import change_rows, version_label
from explorer.components.sections import is_section
from retrieval.engine.pipeline import HYBRID
from retrieval.engine.stored_filter import filter_of
from retrieval.index.outbox import pruned_up_to
from retrieval.models import EmbeddingIndex, OutboxEntry, SearchRecord
from retrieval.presets.catalog import PRESETS
from retrieval.presets.preset import PresetConfig
from retrieval.records.stored_trace import spans_of
from retrieval.search.configuration import Configuration, configuration_of
from retrieval.search.request import SearchRequest

_MAX_COUNTED: Final = 1000  #: The maximum count of changed documents; a higher count is shown as "more than".
_EXPLORER_TOP_K: Final = SearchRequest(text="").top_k


@dataclass(frozen=True, slots=True)
class _Replay:
    address: str  #: Empty if it cannot run again.
    obstacle: str
    leaves_out: tuple[str, ...] = ()  #: Sentences.


@dataclass(frozen=True, slots=True)
class Difference:
    """A property of a search, then and now."""

    label: str
    then: str
    now: str
    is_same: bool


def replay(record: SearchRecord, viewer: User) -> _Replay:
    """Return how a viewer, who may read the record, runs it again in the Explorer."""
    if not record.query:
        return _Replay("", "The query text was not stored, so the search cannot be run again.")
    if record.user is None or not record.user.is_active:
        return _Replay("", "The user account was deleted or is inactive.")
    if record.preset not in PRESETS:
        return _Replay("", "Its preset no longer exists.")
    section = record.trace.get("section", "")
    if section and not is_section(section):
        return _Replay("", "Its section no longer exists.")
    text = record.trace.get("subject", "") if section else record.query
    pairs = [("q", text), ("preset", record.preset), *([("section", section)] if section else [])]
    if record.user != viewer:
        pairs.append(("as", record.user.username))
    mode = record.trace.get("mode", HYBRID)
    if mode != HYBRID:
        pairs.append(("mode", mode))
    # What the logged request excluded, by its own filter or by its key's.
    visible = _slugs(scope_for(Principal(record.user)))
    pairs += [("without", slug) for slug in sorted(visible - _slugs(_asked_scope(record, record.user)))]
    if limits := filter_of(record.trace.get("filter", {})).text:
        pairs.append(("filter", limits))
    return _Replay(f"{reverse('explorer:search')}?{urlencode(pairs)}", "", tuple(_left_out(record)))


def _asked_scope(record: SearchRecord, user: User) -> AccessScope:
    """Return the scope that the logged request would have now; connections that no longer exist are ignored."""
    narrowing = record.trace.get("narrowing", {})
    whole = scope_for(Principal(user, record.key))
    known = _slugs(whole)
    include, exclude = (
        tuple(slug for slug in narrowing.get(name, ()) if slug in known) for name in ("include", "exclude")
    )
    if narrowing.get("include") and not include:
        return whole.only((), reveal=False)
    return scope_for(Principal(user, record.key), ScopeRequest(include, exclude))


def _slugs(scope: AccessScope) -> set[str]:
    return {inclusion.connection.slug for inclusion in scope.included}


def _left_out(record: SearchRecord) -> Iterator[str]:
    if overrides := record.trace.get("overrides"):
        names = PresetConfig.by_present_names(overrides)
        yield f"It ignores settings that the request overrode: {', '.join(names)}."
    was_filtered = any(note.code == "filtered" for span in spans_of(record.trace) for note in span.notes)
    if was_filtered and not record.trace.get("filter"):
        yield "It ignores its document filters."
    if record.trace.get("is_draft"):
        yield "It ignores its draft: the live version is used."
    if Connection.objects.filter(pk__in=record.connection_ids, is_attached=True).exists():
        yield "It does not search files attached to a chat."
    if record.top_k != _EXPLORER_TOP_K:
        yield f"The Explorer shows {_EXPLORER_TOP_K} hits; this search returned up to {record.top_k}."


def config_then(record: SearchRecord) -> PresetConfig:
    """Return the settings of a record, as far as this release has them; defaults for an unknown preset."""
    preset = PRESETS.get(record.preset)
    if preset is None:
        return PresetConfig()
    config, _ = preset.defaults.fitted(record.trace.get("values", {}))
    return config


def since_then(record: SearchRecord, viewer_scope: AccessScope) -> dict[str, Any]:
    """Return what changed since a search, without running it again; documents are counted within `viewer_scope`.

    The changes of settings are None if the record or this release does not have them.
    """
    now = _configuration_now(record)
    differences = [_version(record, now), _index(record), *_documents(record, viewer_scope)]
    changes = None
    if now is not None and "values" in record.trace:
        changes = change_rows(config_then(record), now.config)
        numbers = wording.counted(len(changes), "change") if changes else "unchanged"
        differences.insert(1, Difference("Settings", "", numbers, not changes))
    return {"differences": differences, "changes": changes}


def _configuration_now(record: SearchRecord) -> Configuration | None:
    """Return the configuration of the same request now; None if it could not run."""
    preset = PRESETS.get(record.preset)
    if preset is None:
        return None
    try:
        return configuration_of(preset, overrides=record.trace.get("overrides"))
    except CoreCubeError:
        return None


def _version(record: SearchRecord, now: Configuration | None) -> Difference:
    number, is_draft = record.trace.get("version", 0), record.trace.get("is_draft", False)
    then = f"draft, {version_label(number)}" if is_draft else version_label(number)
    if now is None:
        return Difference(f"Preset {wording.preset_title(record.preset)}", then, "no longer allowed", is_same=False)
    is_same = not is_draft and number == now.number
    return Difference(f"Preset {wording.preset_title(record.preset)}", then, version_label(now.number), is_same)


def _index(record: SearchRecord) -> Difference:
    number = record.trace.get("index")
    wanted = Q(status=EmbeddingIndex.Status.ACTIVE) | Q(pk=number)
    rows = {row.pk: row for row in EmbeddingIndex.objects.filter(wanted)}
    active = next((row for row in rows.values() if row.status == EmbeddingIndex.Status.ACTIVE), None)
    then = "unknown" if number is None else _index_label(rows.get(number), number)
    now = "none" if active is None else _index_label(active, active.pk)
    return Difference("Embedding index", then, now, is_same=active is not None and number == active.pk)


def _index_label(index: EmbeddingIndex | None, number: int) -> str:
    return f"{index.model}, {index.dim} dimensions (index {number})" if index else f"index {number}, deleted since"


def _documents(record: SearchRecord, scope: AccessScope) -> Iterator[Difference]:
    if record.transaction_id is None:
        return
    if record.transaction_id < pruned_up_to():
        yield Difference("Documents added, changed or deleted", "", "unknown", is_same=False)
        return
    later = OutboxEntry.objects.filter(transaction_id__gt=record.transaction_id, connection_id__in=scope.connection_ids)
    for label, deleted in (("Documents added or changed", False), ("Documents deleted", True)):
        entries: Any = later.filter(deleted=deleted).values("document_id").distinct()
        number = entries[: _MAX_COUNTED + 1].count()
        more = "more than " if number > _MAX_COUNTED else ""
        shown = wording.counted(min(number, _MAX_COUNTED), "document")
        yield Difference(label, "", f"{more}{shown}, in the connections that you can see", number == 0)
