"""Searches that stand just before recovery."""

from dataclasses import replace

from django.utils import timezone

from corecube.access import scope_for
from retrieval.engine.deadline import Deadline
from retrieval.engine.query import read_query
from retrieval.engine.state import RequestFilter, SearchState
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.evidence.section_reading import shipped
from retrieval.presets.consolidated.evidence.section_state import SectionAsk, SectionState
from retrieval.presets.consolidated.pipeline import build_consolidated
from retrieval.search import runtime
from retrieval.stages.analyze import Analyze
from retrieval.stages.embed import Embed

REPORT = shipped("report")
#: It requires nothing and takes chunks that lie far away.
LENIENT = replace(REPORT.section("how_it_works"), score_floor=0.0, quality_floor=0.0, required=(), survivor_floors={})


def stage_named(name, resources=None, **config):
    """Return a stage as the preset has it."""
    pipeline = build_consolidated(replace(ConsolidatedConfig(), **config), resources or runtime.resources())
    return next(stage for stage in pipeline.stages if stage.name == name)


def ask_for(section=LENIENT, section_set=REPORT, **fields):
    return SectionAsk(section_set=section_set, section=section, **fields)


def state_of(principal, text, *, ask=None, asked=None, seconds=60.0, **section):
    """Return the state of a search whose query was read and embedded, and whose pool is empty."""
    asked = asked or RequestFilter()
    tools = runtime.resources()
    state = SearchState(
        query=read_query(text, characters=500),
        scope=scope_for(principal),
        deadline=Deadline.after(seconds),
        now=timezone.now(),
        top_k=10,
        filter=asked,
        parts={SectionState: SectionState(ask=ask or ask_for(), request_filter=asked, top_k=20, fetched=30, **section)},
    )
    for stage in (Analyze(tools.text_search_config), Embed(tools.encoder)):
        state = stage(state)
    return state
