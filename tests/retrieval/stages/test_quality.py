from dataclasses import replace

import pytest

from retrieval.engine.state import DropReason
from retrieval.stages.quality import Quality, QualityConfig
from tests.retrieval.conftest import chunk_id, hit


def judged(number, quality, **parts):
    made = hit(number)
    return replace(made, facts=replace(made.chunk, quality=quality, quality_parts=parts))


def run(state, *hits, minimum=0.3):
    return Quality(QualityConfig(minimum=minimum))(replace(state, hits=hits))


def test_boilerplate_goes_and_the_drop_tells_its_parts_the_heaviest_first(state):
    after = run(state, judged(1, 0.12, legal=0.08, navigation=0.8), judged(2, 0.9))
    assert [it.chunk_id for it in after.hits] == [chunk_id(2)]
    (drop,) = after.drops
    assert (drop.chunk_id, drop.reason) == (chunk_id(1), DropReason.QUALITY)
    assert drop.detail == "quality 0.12, minimum 0.30: navigation, legal"


def test_exactly_the_threshold_stays_and_its_quality_is_a_signal(state):
    after = run(state, judged(1, 0.3))
    assert [it.signals["quality"] for it in after.hits] == [0.3]
    assert after.drops == ()


@pytest.mark.parametrize("quality", [0.0, 0.5, 1.0])
def test_a_threshold_of_nothing_keeps_everything(state, quality):
    assert len(run(state, judged(1, quality), minimum=0.0).hits) == 1
