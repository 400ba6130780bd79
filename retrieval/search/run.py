"""The third step of a search: the pipeline."""

import uuid

from retrieval.ranking.score_rounding import round_for_viewer
from retrieval.search.outcome import SearchOutcome
from retrieval.search.prepare import PreparedSearch


def run(prepared: PreparedSearch) -> SearchOutcome:
    """Return what the pipeline makes of a prepared search; raise StageError."""
    preset, configuration = prepared.allowed.preset, prepared.configuration
    version = preset.version(prepared.pipeline, configuration.config)
    state = round_for_viewer(prepared.pipeline.run(prepared.state))
    return SearchOutcome(uuid.uuid4(), preset, version, state, configuration, prepared.resources)
