"""Conversion of evidence and section sets to API responses."""

from retrieval.api import evidence_schemas as schemas
from retrieval.api import shape
from retrieval.api.presets import TunableOut
from retrieval.engine.types import Hit
from retrieval.presets.consolidated.evidence.recovery import is_beyond_filter, is_recovered
from retrieval.presets.consolidated.evidence.rerank_plan import Provider
from retrieval.presets.consolidated.evidence.section_set import SectionSet
from retrieval.presets.consolidated.evidence.sections import Section
from retrieval.search.evidence_runs import Evidence, SectionEvidence
from retrieval.search.outcome import SearchOutcome
from retrieval.search.section_sets import fingerprint, is_edited, is_shipped


def evidence_out(evidence: Evidence, absolute: shape.Absolute, *, with_explanation: bool) -> schemas.EvidenceOut:
    """Return the response for an evidence run, with ledgers, spans and events if requested."""
    return schemas.EvidenceOut(
        id=evidence.id,
        section_set=evidence.section_set.name,
        subject=evidence.subject,
        source_types=list(evidence.source_types),
        sections=[
            _section(found, evidence.subject, absolute, with_explanation=with_explanation)
            for found in evidence.sections
        ],
        total_ms=round(evidence.seconds * 1000, 3),
    )


def _section(
    found: SectionEvidence, subject: str, absolute: shape.Absolute, *, with_explanation: bool
) -> schemas.SectionEvidenceOut:
    outcome = found.outcome
    out = schemas.SectionEvidenceOut(
        section=found.section.name,
        title=found.section.title,
        trace_id=outcome.id if outcome else None,
        query=found.section.query(subject),
        code=found.code,
        problem=found.problem,
        hits=[_hit(*it, outcome, absolute, with_ledger=with_explanation) for it in enumerate(outcome.hits, start=1)]
        if outcome
        else [],
        cells={
            name: schemas.CellOut(presence=cell.presence.value, count=cell.count, recovered=cell.recovered)
            for name, cell in found.cells.items()
        },
        degraded=list(outcome.state.degraded) if outcome else [],
        timings=shape.timings(outcome) if outcome else None,
    )
    if outcome is not None and with_explanation:
        spans = shape.explanation(outcome).spans
        out.explain = schemas.EvidenceExplanation(spans=spans, events=[dict(it) for it in outcome.state.events])
    return out


def _hit(
    rank: int, hit: Hit, outcome: SearchOutcome, absolute: shape.Absolute, *, with_ledger: bool
) -> schemas.EvidenceHitOut:
    plain = shape.hit_out(rank, hit, outcome, absolute, with_ledger=with_ledger)
    return schemas.EvidenceHitOut(
        **plain.model_dump(exclude_unset=True),
        provider="" if hit.provider == Provider.NONE else hit.provider,
        recovered=is_recovered(hit),
        beyond_filter=is_beyond_filter(hit),
    )


def section_set_out(section_set: SectionSet, *, in_full: bool) -> schemas.SectionSetOut:
    """Return the response for a section set, with its content if `in_full`."""
    out = schemas.SectionSetOut(
        name=section_set.name,
        title=section_set.title,
        shipped=is_shipped(section_set.name),
        edited=is_edited(section_set),
        source_types=list(section_set.precedence),
        sections=[schemas.PolicyOut.model_validate(it, from_attributes=True) for it in section_set.sections],
    )
    if in_full:
        out.fingerprint, out.values = fingerprint(section_set), section_set.to_mapping()
    return out


def section_bounds() -> list[TunableOut]:
    """Return the settings of a section with their bounds; each value is the default."""
    return [TunableOut.of(facts, facts.default) for facts in Section.declared()]
