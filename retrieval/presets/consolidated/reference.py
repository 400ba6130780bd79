"""The reference version of the preset `consolidated`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from retrieval.encoders.cosine_scale import UNSCALED
from retrieval.encoders.remote_encoder import RemoteEncoder
from retrieval.engine.pipeline import Stage
from retrieval.engine.state import Note
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.evidence.phases import Phase, PhasedPipeline
from retrieval.presets.consolidated.evidence.section_reading import shipped
from retrieval.presets.consolidated.evidence.sections import SectionSet
from retrieval.presets.consolidated.evidence.store_guard import StoreGuard
from retrieval.presets.consolidated.pipeline import CONSOLIDATED, build_consolidated
from retrieval.presets.consolidated.recovery_tiers import OtherIndexes
from retrieval.presets.consolidated.stages.protect import Protect
from retrieval.presets.consolidated.stages.rerank import RerankSection
from retrieval.presets.consolidated.stages.setup import SetUpSection
from retrieval.presets.consolidated.stages.store import CheckStore
from retrieval.presets.reference import reference_version
from retrieval.stages.resources import Resources

_CAP: Final = 50  #: The highest ceiling that the document names.
#: The kind of content of the sections whose evidence has one; the others have no filter.
_HINTS: Final[Mapping[str, str]] = {
    "financial_analysis": "table",
    "key_metrics": "figures",
    "market_comparables": "table",
    "rental_comparables": "table",
    "sales_comparables": "table",
    "comparables_analysis": "table",
}
_SYMMETRIC: Final = Note("one_embedding_model", "Queries and documents have the same embedding model.", degraded=True)


def reference_sections() -> SectionSet:
    """Return the sections of the document, whatever an admin made of the set: no ceiling is above 50."""
    shipped_set = shipped("property_memo")
    sections = (replace(it, cap=min(it.cap, _CAP), hint=_HINTS.get(it.name, "")) for it in shipped_set.sections)
    return replace(shipped_set, sections=tuple(sections))


def build_consolidated_reference(config: ConsolidatedConfig, resources: Resources) -> PhasedPipeline:
    """Return the document's phases: floors on cosines, a breaker of the store, protection before precedence."""
    others = resources.other_indexes
    if isinstance(others, OtherIndexes):
        others = replace(others, scales=None, includes_services=True)
    tuned = build_consolidated(config, replace(resources, scale=lambda _: UNSCALED, other_indexes=others))
    encoder = resources.encoder
    is_asymmetric = isinstance(encoder, RemoteEncoder) and encoder.service.query_model not in {"", encoder.name}
    check = CheckStore(() if is_asymmetric else (_SYMMETRIC,))
    store = (resources.part(StoreGuard) or StoreGuard()).breaker(config.breaker)
    return PhasedPipeline.of((_as_written(phase, check) for phase in tuned.phases), store)


def _as_written(phase: Phase, check: CheckStore) -> Phase:
    stages: list[Stage] = [check] if phase.name == "validation" else []
    protect = [it for it in phase.stages if isinstance(it, Protect)]
    for stage in phase.stages:
        if isinstance(stage, SetUpSection):
            stages.append(replace(stage, written=reference_sections()))
        elif isinstance(stage, RerankSection):
            # The document protects recovered chunks first, then prefers sources and balances them.
            stages += [replace(stage, is_expected=True), *protect]
        elif stage not in protect:
            stages.append(stage)
    return replace(phase, stages=tuple(stages))


CONSOLIDATED_REFERENCE: Final = reference_version(
    CONSOLIDATED,
    "As published, before CoreCube improved it: floors on cosines, ceilings of 50, the published order of stages.",
    build=build_consolidated_reference,
)
