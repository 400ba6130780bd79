"""What the API of evidence reads and writes."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from retrieval.api.preset_schemas import Overrides, TunableOut
from retrieval.api.request_body import RequestBody
from retrieval.api.schemas import Explanation, HitOut, ScopeIn, Timings
from retrieval.search.evidence_runs import MAX_SUBJECT
from retrieval.search.section_sets import DEFAULT_SECTION_SET

_NAME = 60
_ASKED: JsonDict = {
    "section_set": "report",
    "section": "facts_and_figures",
    "subject": "the move to the new warehouse",
    "compartments": ["finance"],
    "budget_ms": 10_000,
}


class EvidenceIn(RequestBody):
    """What evidence is asked for."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [_ASKED]})

    section_set: str = Field(default=DEFAULT_SECTION_SET, max_length=_NAME, description="A section set's name.")
    section: str = Field(default="", max_length=_NAME, description="One of its sections; empty for all, in order.")
    subject: str = Field(default="", max_length=MAX_SUBJECT, description="What the report is about; may be empty.")
    compartments: list[str] = Field(
        default=[], max_length=100, description="Slugs of the compartments to search; empty means all visible ones."
    )
    scope: ScopeIn = Field(default_factory=ScopeIn)
    documents: list[UUID] = Field(
        default=[],
        max_length=1000,
        description="Only these documents. A section that finds fewer than 3 chunks in them is searched for"
        " beyond them too; what was found there is marked.",
    )
    budget_ms: int = Field(
        default=60_000,
        ge=50,
        le=600_000,
        description="Milliseconds for all sections together. No section takes longer than the preset's deadline.",
    )
    explain: bool = Field(default=False, description="Adds the score ledger of each hit, and what each stage did.")
    overrides: Overrides = Field(default_factory=dict)
    draft: bool = Field(default=False, description="For admins: runs with the preset's draft.")


class EvidenceHitOut(HitOut):
    """A chunk that was found for a section."""

    provider: str = Field(
        description='What scored it last: "cross_encoder" or "semantic_bm25"; empty where neither did.'
    )
    recovered: bool = Field(description="Whether it was looked for because the pool lacked its source type.")
    beyond_filter: bool = Field(description="Whether it lies outside the documents that were asked for.")


class CellOut(BaseModel):
    """One source type in one section's evidence."""

    presence: str = Field(
        description="For what the section requires: found; recovered; thin, where there is less of it than the section"
        " needs; missing; or not_looked_for, where the time was up before it was. Else optional or none."
    )
    count: int = Field(description="Hits of that type.")
    recovered: int = Field(description="How many of them were looked for because the pool lacked the type.")


class EvidenceExplanation(Explanation):
    """What each stage did, and what happened inside of them."""

    events: list[dict[str, Any]] = Field(description="Structured events in order: numbers and names, never text.")


class SectionEvidenceOut(BaseModel):
    """What was found for a section."""

    section: str
    title: str
    trace_id: UUID | None = Field(description="Names the stored search; none where nothing was searched.")
    query: str = Field(description="What was searched for: the section's template with the subject in it.")
    code: str = Field(description="Why nothing was searched or the search failed; empty where neither.")
    problem: str = Field(description="The same in a sentence.")
    hits: list[EvidenceHitOut]
    cells: dict[str, CellOut] = Field(description="The section's row of the matrix, by source type.")
    degraded: list[str] = Field(description="Codes of what fell back or was cut short.")
    timings: Timings | None
    explain: EvidenceExplanation | None = None


class EvidenceOut(BaseModel):
    """Evidence for each section asked for: the sections are the rows of a matrix, source types its columns."""

    id: UUID
    section_set: str
    subject: str
    source_types: list[str] = Field(description="The matrix's columns: the set's source types, then others found.")
    sections: list[SectionEvidenceOut]
    total_ms: float


class PolicyOut(BaseModel):
    """A section, as whoever asks for it needs to know it."""

    name: str
    title: str
    required: list[str] = Field(description="Source types that it needs, and that are looked for where they lack.")
    optional: list[str] = Field(description="Source types that are welcome.")


class SectionSetOut(BaseModel):
    """A section set; to an admin also everything that is written in it."""

    name: str
    title: str
    shipped: bool = Field(description="Whether CoreCube comes with it.")
    edited: bool = Field(description="Whether it was changed since it came.")
    source_types: list[str] = Field(description="In their order of precedence.")
    sections: list[PolicyOut]
    fingerprint: str | None = Field(default=None, description="Another one after each edit. For admins.")
    values: dict[str, Any] | None = Field(default=None, description="The whole set, as it is saved. For admins.")


class SectionSetsOut(BaseModel):
    """The section sets: the shipped ones, then the installation's own."""

    default: str = Field(description="The set of a request that names none.")
    section_sets: list[SectionSetOut]
    bounds: list[TunableOut] | None = Field(default=None, description="A section's numbers. For admins.")


SectionSetValues = Annotated[
    dict[str, Any],
    Field(description="The whole set: title, source_types, defaults and sections. Its name is that of the address."),
]


class SectionSetIn(RequestBody):
    """A section set's whole content."""

    model_config = ConfigDict(extra="forbid")

    values: SectionSetValues
    replaces: str = Field(default="", max_length=40, description="Fingerprint of what was edited; empty for a new one.")
