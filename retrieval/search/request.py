"""The first step of a search: what was requested, and whether it may be."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.conf import settings

from corecube.access import Principal, ScopeRequest
from corecube.errors import InvalidRequestError, NotPermittedError
from corecube.sanitise import storable
from retrieval.engine.metadata_conditions import Conditions
from retrieval.engine.pipeline import HYBRID
from retrieval.engine.state import RequestFilter
from retrieval.errors import EmptyQueryError, QueryTooLongError
from retrieval.models import SearchRecord
from retrieval.presets.catalog import DEFAULT_PRESET, preset_named
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.evidence.section_state import SectionAsk
from retrieval.presets.preset import Preset


@dataclass(frozen=True, slots=True)
class Contender:
    """A side of an experiment: a preset with the numbers that its version had at the start."""

    preset: str
    number: int  #: 0 for the shipped defaults.
    values: Mapping[str, float]  #: Differences from the shipped defaults.

    @property
    def label(self) -> str:
        """The preset and its version: "corecube 3"."""
        return f"{self.preset} {self.number or 'defaults'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A query, and how to search for it."""

    text: str
    #: What was typed, where `text` is a follow-up question rewritten to be understood without the conversation.
    original_text: str = ""
    preset: str = DEFAULT_PRESET
    top_k: int | None = 10  #: Hits to return, 1 to 100; None for the preset's own number.
    narrowing: ScopeRequest = field(default_factory=ScopeRequest)
    #: Conditions on the documents in scope, besides those that the preset's router finds in the text.
    filter: RequestFilter = field(default_factory=RequestFilter)
    conditions: Conditions | None = None
    #: Lists the connections outside the scope with their reason: only for a viewer who is an admin.
    reveal_excluded: bool = False
    overrides: Mapping[str, object] = field(default_factory=dict)
    judge_model: str = ""  #: Name of the language model that scores candidates where it may; empty for the preset's.
    draft: bool = False  #: Runs with the preset's draft instead of its live version: only for an admin.
    #: Complete numbers in place of a stored version's, as differences from the shipped defaults: only for an admin.
    values: Mapping[str, object] | None = None
    version: int | None = None  #: The version that had these values; None for values that no version has.
    #: Set by an experiment alone: its numbers are used in place of the live version's.
    contender: Contender | None = None
    mode: str = HYBRID
    #: Reformulations of the query that are searched for too; each adds to the search's time.
    variants: tuple[str, ...] = ()
    #: Whether a worker runs it: then a reranker may take long, and may be a service.
    is_queued: bool = False
    #: The section to gather evidence for, with the preset that has sections; `text` is its query.
    section: SectionAsk | None = None
    #: Seconds within which it must begin, or it is refused; a section's remaining time can be less.
    budget_seconds: float = 15.0
    now: datetime | None = None  #: The moment that ages, relative dates and accesses count from; None for now.
    surface: SearchRecord.Surface = SearchRecord.Surface.COMMAND  #: The channel it comes from, for the log.

    @property
    def is_rewritten(self) -> bool:
        """Whether it searches for other words than were typed."""
        return self.original_text not in {"", self.text}

    @property
    def section_seconds(self) -> float | None:
        """Seconds left to the run that gathers a section's evidence; None where nothing bounds it."""
        return self.section.seconds if self.section else None


@dataclass(frozen=True, slots=True)
class AllowedRequest:
    """A request whose query can be searched for, by a principal who may use its preset in this way."""

    request: SearchRequest
    principal: Principal
    text: str
    preset: Preset

    @property
    def budget_seconds(self) -> float:
        """Seconds within which the search has to begin."""
        left = self.request.section_seconds
        return self.request.budget_seconds if left is None else max(0.0, min(self.request.budget_seconds, left))

    def after(self, waited_seconds: float) -> "AllowedRequest":
        """Return the request after a wait, which counts against its section's time."""
        section = self.request.section
        if section is None or section.seconds is None:
            return self
        section = replace(section, seconds=section.seconds - waited_seconds)
        return replace(self, request=replace(self.request, section=section))


def read(request: SearchRequest, principal: Principal) -> AllowedRequest:
    """Return the request where the principal may make it.

    Raises EmptyQueryError, QueryTooLongError, UnknownPresetError, NotPermittedError, InvalidRequestError.
    """
    text, preset = checked_query(request.text), preset_named(request.preset)
    if not principal.may_use(preset.name):
        raise NotPermittedError("This API key may not use that preset.")
    if request.section is not None and not isinstance(preset.defaults, ConsolidatedConfig):
        raise InvalidRequestError(f"The preset {preset.name!r} has no sections.")
    if (request.draft or request.values is not None) and not (principal.actor or principal).is_admin:
        raise NotPermittedError("Only an admin may search with a draft.")
    return AllowedRequest(request, principal, text, preset)


def checked_query(text: str) -> str:
    """Return the query without blanks around it, as the store can hold it; raise EmptyQueryError, QueryTooLongError."""
    query = storable(text).strip()
    if not query:
        raise EmptyQueryError
    if len(query) > settings.CORECUBE_MAX_QUERY_CHARACTERS:
        limit = settings.CORECUBE_MAX_QUERY_CHARACTERS
        message = f"The query has {len(query):,} characters; the maximum is {limit:,}."
        raise QueryTooLongError(message)
    return query
