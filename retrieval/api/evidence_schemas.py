"""Request and response bodies about evidence and section sets."""

from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from retrieval.api.presets import TunableOut
from retrieval.api.schemas import Explanation, HitOut, Overrides, ScopeIn, StrictBody, Timings
from retrieval.search.evidence_runs import MAX_SUBJECT
from retrieval.search.section_sets import DEFAULT_SECTION_SET

_MAX_NAME = 60
_EXAMPLE: JsonDict = {
    "section_set": "report",
    "section": "facts_and_figures",
    "subject": "the move to the new warehouse",
    "compartments": ["finance"],
    "budget_ms": 10_000,
}


class EvidenceIn(StrictBody):
    """A request for evidence."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    section_set: str = Field(default=DEFAULT_SECTION_SET, max_length=_MAX_NAME, description="A section set's name.")
    section: str = Field(default="", max_length=_MAX_NAME, description="One of its sections; empty for all, in order.")
    subject: str = Field(default="", max_length=MAX_SUBJECT, description="Subject of the report; may be empty.")
    compartments: list[str] = Field(
        default=[], max_length=100, description="Slugs of the compartments to search; empty means all visible ones."
    )
    scope: ScopeIn = Field(default_factory=ScopeIn)
    documents: list[UUID] = Field(
        default=[],
        max_length=1000,
        description="Only these documents. A section with fewer than 3 chunks in them is also searched in other"
        " documents; those hits are marked.",
    )
    budget_ms: int = Field(
        default=60_000,
        ge=50,
        le=600_000,
        description="Milliseconds for all sections together; each section also has the preset's deadline.",
    )
    explain: bool = Field(default=False, description="Adds the score ledger of each hit, and what each stage did.")
    overrides: Overrides = Field(default_factory=dict)
    draft: bool = Field(default=False, description="For admins: runs with the preset's draft.")


class EvidenceHitOut(HitOut):
    """A hit of a section."""

    provider: str = Field(description='The last scorer: "cross_encoder" or "semantic_bm25"; empty for neither.')
    recovered: bool = Field(description="Whether an extra search for a missing source type found it.")
    beyond_filter: bool = Field(description="Whether it lies outside the requested documents.")


class CellOut(BaseModel):
    """One source type in one section's evidence."""

    presence: str = Field(
        description="For required types: found; recovered; thin (fewer hits than required); missing; or"
        " not_looked_for (the deadline passed first). Else optional or none."
    )
    count: int = Field(description="Hits of that type.")
    recovered: int = Field(description="How many of them an extra search for the missing type found.")


class EvidenceExplanation(Explanation):
    """What each stage did, with its events."""

    events: list[dict[str, Any]] = Field(description="Structured events in order: numbers and names, no text.")


class SectionEvidenceOut(BaseModel):
    """The evidence of a section."""

    section: str
    title: str
    trace_id: UUID | None = Field(description="Id of the stored search; null if the section was not searched.")
    query: str = Field(description="The query: the section's template with the subject.")
    code: str = Field(description="Code of why the section was not searched or failed; else empty.")
    problem: str = Field(description="The same as a sentence.")
    hits: list[EvidenceHitOut]
    cells: dict[str, CellOut] = Field(description="The section's row of the matrix, by source type.")
    degraded: list[str] = Field(description="Codes of fallbacks and early stops.")
    timings: Timings | None
    explain: EvidenceExplanation | None = None


class EvidenceOut(BaseModel):
    """Evidence for each section: a matrix of sections (rows) and source types (columns)."""

    id: UUID
    section_set: str
    subject: str
    source_types: list[str] = Field(description="The matrix's columns: the set's source types, then others found.")
    sections: list[SectionEvidenceOut]
    total_ms: float


class PolicyOut(BaseModel):
    """A section and its source types."""

    name: str
    title: str
    required: list[str] = Field(description="Required source types; an extra search looks for missing ones.")
    optional: list[str] = Field(description="Optional source types.")


class SectionSetOut(BaseModel):
    """A section set; for admins also its content."""

    name: str
    title: str
    shipped: bool = Field(description="Whether CoreCube includes it.")
    edited: bool = Field(description="Whether it differs from the shipped content.")
    source_types: list[str] = Field(description="In order of precedence.")
    sections: list[PolicyOut]
    fingerprint: str | None = Field(default=None, description="Changes with every edit. For admins.")
    values: dict[str, Any] | None = Field(default=None, description="The complete set as saved. For admins.")


class SectionSetsOut(BaseModel):
    """The section sets: first the shipped ones."""

    default: str = Field(description="The set of a request without `section_set`.")
    section_sets: list[SectionSetOut]
    bounds: list[TunableOut] | None = Field(default=None, description="The settings of a section. For admins.")


class SectionSetIn(StrictBody):
    """A section set's complete content."""

    values: dict[str, Any] = Field(
        description="The complete set: title, source_types, defaults and sections. Its name is in the URL."
    )
    replaces: str = Field(default="", max_length=40, description="Fingerprint of the edited set; empty for a new one.")
