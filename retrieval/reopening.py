"""A logged search taken up again, with the passages that it packed: nothing is searched, and nothing logged."""

from dataclasses import replace

from django.conf import settings
from django.utils import timezone

from corecube.access import Principal, scope_for
from retrieval.deadline import Deadline
from retrieval.facts import read_facts
from retrieval.models import SearchRecord
from retrieval.presets import preset_named
from retrieval.query import read_query
from retrieval.services import SearchOutcome, checked_query
from retrieval.stages.analyze import Analyze
from retrieval.stages.assemble import header
from retrieval.stored_trace import packed_hits, passages_of
from retrieval.types import Passage, SearchState


def reopened(record: SearchRecord, principal: Principal, *, text: str) -> SearchOutcome:
    """Return what an answer to a logged search is written from: its query, which is `text`, its terms and passages.

    Passages are read as they stand now, in the scope that `principal` has now; those that are gone are left out, and
    the others numbered without gaps. Raises EmptyQueryError, QueryTooLongError, UnknownPresetError.
    """
    preset = preset_named(record.preset)
    config, _ = preset.defaults.fitted(record.trace.get("values", {}))
    scope = scope_for(principal).only(record.connection_ids, reveal=False)
    asked = SearchState(
        query=read_query(checked_query(text), characters=config.query.retrieval_characters),
        scope=scope,
        deadline=Deadline.after(config.deadline_ms / 1000),
        now=timezone.now(),
        top_k=record.top_k,
    )
    packed = passages_of(record.trace)
    hits = read_facts(packed_hits(record.trace), scope=scope)
    passages = tuple(
        Passage(number, hit, header(number, hit, scope), packed[hit.chunk_id])
        for number, hit in enumerate(hits, start=1)
    )
    state = replace(Analyze(settings.CORECUBE_TEXT_SEARCH_CONFIG)(asked), hits=hits, passages=passages)
    return SearchOutcome(record.pk, preset, record.preset_version, replace(state, access_checked=True))
