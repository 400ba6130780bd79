"""Gathering evidence for one section or a whole section set, under one budget of time.

Every section is a separate search with its own trace; what they share is the budget, and what they learn of source
types that are not there. They follow each other, so that a run takes no more of the server than one search does; the
legs of each are side by side.
"""

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import ClassVar, Final

from corecube.access import Principal, ScopeRequest, scope_for
from corecube.errors import CoreCubeError, InvalidRequestError, NotFoundError, NotPermittedError
from corecube.models import Connection
from corecube.sanitise import storable
from retrieval.engine.pipeline import Watch
from retrieval.engine.state import RequestFilter
from retrieval.errors import SearchCancelledError
from retrieval.models import SearchRecord
from retrieval.presets.catalog import version_of
from retrieval.presets.consolidated.evidence.recovery import Cell, Diagnoses, Presence, cells_of, looked_for
from retrieval.presets.consolidated.evidence.section_state import SectionAsk
from retrieval.presets.consolidated.evidence.sections import Section, SectionSet
from retrieval.search.configuration import configuration_of
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest
from retrieval.search.section_sets import section_named, section_set_named
from retrieval.search.service import search

logger = logging.getLogger(__name__)

#: Minimum share: with less a search finds nothing, so the first searches get it rather than all too little.
MIN_SECONDS: Final = 0.25
PRESET: Final = "consolidated"
#: Characters of a subject: a longer one would leave no room for the words of a section's template in its query.
MAX_SUBJECT: Final = 200
NO_TIME: Final = "deadline_exceeded_before_setup"  #: The code of a section that the budget left no time for.


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds for all searches together, from `started`; None for no limit."""

    seconds: float | None
    started: float
    clock: Callable[[], float] = perf_counter

    @property
    def left(self) -> float | None:
        """Remaining seconds, at least 0; None without a limit."""
        return None if self.seconds is None else max(0.0, self.started + self.seconds - self.clock())

    def share(self, waiting: int) -> float | None:
        """Return the seconds for the next of `waiting` searches, 1 or more; None without a limit.

        Each gets an equal share of the remaining time, but at least the minimum while it lasts.
        """
        left = self.left
        return None if left is None else min(left, max(MIN_SECONDS, left / waiting))


class UnknownCompartmentError(NotFoundError, code="unknown_compartment"):
    """No compartment with that name is visible to you."""

    param: ClassVar[str] = "compartments"


def within_compartments(principal: Principal, narrowing: ScopeRequest, compartments: tuple[str, ...]) -> ScopeRequest:
    """Return `narrowing`, limited further to the connections of some compartments.

    Unchanged without compartments. Raises UnknownConnectionError, and UnknownCompartmentError for a
    compartment none of whose connections is visible, whether or not it exists.
    """
    left = [it.connection.slug for it in scope_for(principal, narrowing).included]
    if not compartments:
        return narrowing
    visible = Connection.objects.filter(pk__in=scope_for(principal).connection_ids).order_by("slug")
    compartment_of = dict(visible.values_list("slug", "compartment__slug"))
    if not set(compartments) <= set(compartment_of.values()):
        raise UnknownCompartmentError
    wanted = tuple(slug for slug in left if compartment_of.get(slug) in compartments)
    # An empty list would include everything; excluding everything leaves nothing.
    return ScopeRequest(include=wanted) if wanted else ScopeRequest(tuple(compartment_of), tuple(compartment_of))


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRequest:
    """The requested evidence."""

    section_set: str
    preset: str = PRESET  #: The tuned preset, or its reference version.
    section: str = ""  #: One of its sections; empty for all, in order.
    subject: str = ""
    narrowing: ScopeRequest = field(default_factory=ScopeRequest)
    #: Only the connections of these compartments, beside the narrowing. Empty for all.
    compartments: tuple[str, ...] = ()
    #: Only these documents; sections that find hardly anything in them look beyond them. Empty for all.
    documents: frozenset[uuid.UUID] = frozenset()
    #: Seconds for all sections together; None for one deadline of the preset each.
    budget_seconds: float | None = None
    overrides: Mapping[str, object] = field(default_factory=dict)
    draft: bool = False


@dataclass(frozen=True, slots=True)
class SectionEvidence:
    """What was found for a section."""

    section: Section
    outcome: SearchOutcome | None  #: None where the budget was used up before it began, or it failed.
    #: By canonical source type, in the set's order of precedence, others behind them.
    cells: Mapping[str, Cell] = field(default_factory=dict)
    code: str = ""  #: Why there is no outcome, as an error's code and sentence; empty where there is one.
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A run over sections."""

    id: uuid.UUID
    section_set: SectionSet
    subject: str
    sections: tuple[SectionEvidence, ...]
    seconds: float  #: From the first section's beginning to the last one's end.

    @property
    def source_types(self) -> tuple[str, ...]:
        """The columns of the matrix: the set's source types, then others that were found."""
        found = (name for it in self.sections for name in it.cells)
        return tuple(dict.fromkeys((*self.section_set.precedence, *found)))


def gather(request: EvidenceRequest, *, principal: Principal, watch: Watch | None = None) -> Evidence:
    """Gather evidence for the requested sections, as `principal`, and store each section's trace.

    `watch` is called before each section, and before each stage of its search, with the section's place and title.

    A section that fails leaves the others alone; where every one fails, the first one's error is raised. Raises
    UnknownSectionSetError, UnknownSectionError, NotFoundError for a compartment of which nothing is visible, and what
    `search` raises of the principal and the request as a whole.
    """
    started = perf_counter()
    preset = version_of(PRESET, request.preset)
    require_preset(principal, preset.name)
    section_set = section_set_named(request.section_set)
    sections = asked_sections(section_set, request.section)
    subject = " ".join(storable(request.subject).split())
    if len(subject) > MAX_SUBJECT:
        raise InvalidRequestError(f"The subject has {len(subject):,} characters; the maximum is {MAX_SUBJECT:,}.")
    # What concerns the request as a whole is raised before anything is searched.
    if request.draft and not (principal.actor or principal).is_admin:
        raise NotPermittedError("Only an admin may search with a draft.")
    configuration_of(preset, overrides=request.overrides, draft=request.draft)
    narrowing = within_compartments(principal, request.narrowing, request.compartments)
    run = _Run(request, principal, section_set, subject, narrowing, Budget(request.budget_seconds, started))
    found = [
        run.gathered(
            section,
            waiting=len(sections) - place,
            watch=partial(_watch_section, watch, place, len(sections), section.title) if watch else None,
        )
        for place, section in enumerate(sections)
    ]
    if len(run.errors) == len(sections):
        raise run.errors[0]
    evidence = Evidence(uuid.uuid4(), section_set, subject, tuple(found), perf_counter() - started)
    logger.info("evidence.done id=%s set=%s sections=%d", evidence.id, section_set.name, len(sections))
    return evidence


def _watch_section(watch: Watch, place: int, total: int, title: str, *_: object) -> None:
    """Report a section in place of a stage of its search."""
    watch(place, total, title)


def asked_sections(section_set: SectionSet, name: str) -> tuple[Section, ...]:
    """Return the section of that name, or all in order for an empty one; raise UnknownSectionError."""
    return (section_named(section_set, name),) if name else section_set.sections


def require_preset(principal: Principal, preset: str = PRESET) -> None:
    """Raise NotPermittedError where the principal's key may not use the preset that has sections."""
    if not principal.may_use(preset):
        raise NotPermittedError("This API key may not use that preset.")


@dataclass(frozen=True, slots=True)
class _Run:
    request: EvidenceRequest
    principal: Principal
    section_set: SectionSet
    subject: str
    narrowing: ScopeRequest
    budget: Budget
    diagnoses: Diagnoses = field(default_factory=Diagnoses)  #: Good for this principal, narrowing and run alone.
    errors: list[CoreCubeError] = field(default_factory=list)

    def gathered(self, section: Section, *, waiting: int, watch: Watch | None = None) -> SectionEvidence:
        """Return a section's evidence; `waiting` sections, itself included, have to live on what time is left."""
        seconds = self.budget.share(waiting)
        if seconds is not None and seconds <= 0:
            return SectionEvidence(
                section, None, code=NO_TIME, problem="The total timeout was reached before this section was searched."
            )
        try:
            request = SearchRequest(
                text=section.query(self.subject),
                preset=self.request.preset,
                top_k=section.keep,
                narrowing=self.narrowing,
                filter=RequestFilter(documents=self.request.documents),
                overrides=self.request.overrides,
                draft=self.request.draft,
                section=SectionAsk(
                    section_set=self.section_set,
                    section=section,
                    subject=self.subject,
                    seconds=seconds,
                    diagnoses=self.diagnoses,
                ),
                surface=SearchRecord.Surface.EVIDENCE,
            )
            outcome = search(request, principal=self.principal, watch=watch)
        except SearchCancelledError:
            raise
        except Exception as error:  # noqa: BLE001 -- whatever it is, the other sections' evidence is not lost with it
            return self._failed(section, error)
        known = looked_for(section, outcome.trace, outcome.state.events)
        return SectionEvidence(section, outcome, cells_of(section, self.section_set, outcome.hits, known))

    def _failed(self, section: Section, error: Exception) -> SectionEvidence:
        known = error
        if not isinstance(known, CoreCubeError):
            known = CoreCubeError("The search for this section failed unexpectedly.")
            known.__cause__ = error
        self.errors.append(known)
        trace = error if known.status >= 500 else None  # noqa: PLR2004 -- HTTP
        logger.warning("evidence.section_failed section=%s code=%s", section.name, known.code, exc_info=trace)
        return SectionEvidence(section, None, code=known.code, problem=str(known))


def lines_of(evidence: Evidence) -> Iterator[tuple[SectionEvidence, tuple[Cell, ...]]]:
    """Yield the matrix row by row: each section with a cell for every column of `evidence.source_types`."""
    for found in evidence.sections:
        yield found, tuple(found.cells.get(name, Cell(Presence.NONE)) for name in evidence.source_types)
