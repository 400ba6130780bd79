"""Searching by one leg alone."""

import pytest

from retrieval.errors import UnknownModeError
from retrieval.index import active
from retrieval.models import SearchRecord
from retrieval.presets.catalog import PRESETS
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.fakes import HashEncoder

pytestmark = pytest.mark.usefixtures("unhurried")


@pytest.fixture
def find(world):
    def run(mode="hybrid", text="rollback staging", **fields):
        return search(SearchRequest(text=text, mode=mode, **fields), principal=world.principal("alice"))

    return run


@pytest.mark.parametrize("mode", ["dense", "fulltext"])
def test_a_mode_searches_by_one_leg_and_orders_by_it(find, mode):
    outcome = find(mode)
    assert list(outcome.state.rankings) == [mode]
    assert outcome.hits
    assert all(set(hit.ranks) == {mode} for hit in outcome.hits)
    assert all(set(hit.contributions) == {mode, "freshness"} for hit in outcome.hits)
    assert all(sum(hit.contributions.values()) == pytest.approx(hit.score) for hit in outcome.hits)
    assert outcome.state.answerability is not None
    assert "leg_agreement" not in outcome.state.answerability.signals


@pytest.mark.parametrize(
    ("mode", "prefetched"), [("dense", set()), ("fulltext", {"fulltext"}), ("hybrid", {"fulltext"})]
)
def test_only_legs_that_run_are_prefetched(world, mode, prefetched):
    preset = PRESETS["corecube"]
    embed = preset.build(preset.defaults, runtime.resources(HashEncoder())).in_mode(mode).stages[0]
    assert {leg.name for it in embed.ahead for leg in it.legs} == prefetched


def test_full_text_alone_finds_nothing_where_no_word_stands(find):
    assert find("fulltext", "xylophone").hits == ()
    assert find("dense", "xylophone").hits


def test_the_fingerprint_and_the_trace_tell_the_mode(find):
    whole, alone = find(), find("dense")
    assert whole.preset_version != alone.preset_version
    assert whole.trace[0].stage == "embed"
    assert [note.code for note in alone.trace[0].notes] == ["mode"]
    records = {record.trace["mode"] for record in SearchRecord.objects.all()}
    assert records == {"hybrid", "dense"}
    assert alone.state.degraded == ()


def test_hybrid_is_the_default_and_changes_nothing(world, find):
    default = search(SearchRequest(text="rollback staging"), principal=world.principal("alice"))
    assert default.preset_version == find().preset_version


@pytest.mark.parametrize("mode", ["graph", "", "dense "])
def test_a_mode_that_the_preset_has_no_leg_for_is_refused(find, mode):
    with pytest.raises(UnknownModeError, match="modes: hybrid, dense, fulltext"):
        find(mode)
    assert not SearchRecord.objects.exists()


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("preset", PRESETS.values(), ids=list(PRESETS))
def test_a_preset_tells_the_legs_that_it_has(preset):
    assert preset.build(preset.defaults, runtime.resources()).legs == preset.legs


def test_a_confidence_that_was_calibrated_for_both_legs_is_not_used_for_one(find, monkeypatch):
    from dataclasses import replace

    from retrieval.ranking.answerability.model import shipped

    own = replace(shipped("hash"), is_calibrated=True)
    monkeypatch.setattr(runtime, "active_models", lambda _: {"corecube": own})
    assert find().state.answerability.is_calibrated
    assert not find("dense").state.answerability.is_calibrated


def test_the_record_keeps_how_the_request_narrowed(world):
    from corecube.access import ScopeRequest

    narrowing = ScopeRequest(include=("runbooks", "vault"), exclude=("vault",))
    search(SearchRequest(text="rollback", narrowing=narrowing), principal=world.principal("alice"))
    assert SearchRecord.objects.get().trace["narrowing"] == {"include": ["runbooks", "vault"], "exclude": ["vault"]}


def test_a_query_that_cannot_be_embedded_finds_nothing_by_vectors_and_says_so(find, monkeypatch):
    from retrieval.errors import EncoderError

    class Broken(HashEncoder):
        def encode_query(self, _):
            raise EncoderError

    monkeypatch.setattr(active, "encoder", lambda *_: Broken())
    outcome = find("dense")
    assert outcome.hits == ()
    assert outcome.state.degraded == ("embed_failed",)
