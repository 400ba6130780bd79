"""What cosines mean, model by model."""

from threading import Event

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from retrieval.encoders.breaker import BreakerState
from retrieval.encoders.cosine_scale import UNSCALED, CosineScale, CosineScales, measured_scale
from retrieval.encoders.onnx_encoder import load_encoder
from retrieval.engine.types import NOISE
from retrieval.errors import EncoderError
from retrieval.presets.consolidated.evidence.cascade import CascadeConfig, QualityGate
from retrieval.presets.consolidated.evidence.density import TightenHint, above_score_floor, tighten
from tests.fakes import HashEncoder
from tests.retrieval.presets.consolidated.evidence.conftest import numbers, type_of, typed

#: Half of the scale is noise: a cosine of 0.6 is a nearness of 0.2.
HALF = CosineScale(0.5, is_measured=True)


def test_what_unrelated_texts_have_counts_as_nothing():
    assert HALF.nearness(0.6) == pytest.approx(0.2)
    assert (HALF.nearness(0.5), HALF.nearness(0.1), HALF.nearness(1.0)) == (0.0, 0.0, 1.0)
    assert UNSCALED.nearness(0.6) == 0.6


@given(st.floats(0, 0.95), st.lists(st.floats(-1, 1), min_size=2))
def test_a_scale_keeps_the_order_and_its_bounds(noise, cosines):
    found = [CosineScale(noise).nearness(cosine) for cosine in sorted(cosines)]
    assert found == sorted(found)
    assert all(0 <= it <= 1 for it in found)


def test_a_hit_of_another_model_is_measured_by_its_own_noise():
    assert HALF.nearness_of(typed(1, cosine=0.6)) == pytest.approx(0.2)
    assert HALF.nearness_of(typed(1, cosine=0.6, **{NOISE: 0.2})) == pytest.approx(0.5)
    assert HALF.nearness_of(typed(1)) is None


def test_floors_gate_and_cliff_compare_on_the_scale():
    hits = (typed(1, cosine=0.9), typed(2, cosine=0.58), typed(3, cosine=0.54), typed(4))
    kept, drops = above_score_floor(hits, 0.15, HALF)
    assert numbers(kept) == [1, 2, 4]
    assert drops[0].numbers == {"nearness": pytest.approx(0.08), "cosine": 0.54, "floor": 0.15}
    gate = QualityGate.of(quality_floor=0.0, score_floor=0.2, config=CascadeConfig(floor_share=0.5), scale=HALF)
    assert [gate.passes(hit) for hit in hits] == [True, True, False, True]
    cut = tighten(hits, TightenHint(floor=0.15), keep=1, breaker=BreakerState.CLOSED, type_of=type_of, scale=HALF)
    assert (numbers(cut.hits), cut.drops[0].detail) == (
        [1, 2, 4],
        "scaled similarity 0.08 (cosine 0.54), behind a cliff at 0.15",
    )


@pytest.fixture(scope="module")
def model():
    return load_encoder(settings.CORECUBE_MODELS_DIR / "bge-small-en-v1.5")


_PASSAGES = (
    "The harbour wall was repaired in spring; the invoice of the builders came to 48,200 euros.",
    "To roll a release back, stop the workers, restore the last snapshot and start them again.",
    "Employees may carry over five days of holiday into the first quarter of the next year.",
    "The committee approved the minutes of the last meeting without changes.",
)


def test_with_a_real_model_unrelated_passages_lie_far_below_what_answers(model):
    scale = measured_scale(model)
    # Without the scale every floor from 0.10 to 0.18 would let everything pass.
    assert 0.3 < scale.noise < 0.4
    vectors = model.encode_documents(_PASSAGES)

    def kept(question, scale):
        cosines = vectors @ model.encode_query(question)
        hits = tuple(typed(number, cosine=float(cosine)) for number, cosine in enumerate(cosines))
        return numbers(above_score_floor(hits, 0.18, scale)[0])

    assert kept("what did the repair of the harbour wall cost", UNSCALED) == [0, 1, 2, 3]
    assert kept("what did the repair of the harbour wall cost", scale) == [0, 1]
    assert kept("zzqq xxyy", UNSCALED) == [0, 1, 2, 3]
    assert kept("zzqq xxyy", scale) == []


def test_a_model_that_goes_by_words_has_no_noise():
    assert measured_scale(HashEncoder()).noise < 0.02


class Counting(HashEncoder):
    """Counts how often it is asked; fails while told to."""

    asked = 0
    fails = False

    def encode_documents(self, texts):
        self.asked += 1
        if self.fails:
            raise EncoderError("It is away.")
        return super().encode_documents(texts)


def test_a_model_is_measured_once():
    scales, encoder = CosineScales(), Counting()
    assert scales.known(encoder) == UNSCALED
    first = scales.measured(encoder)
    asked = encoder.asked
    assert (scales.measured(encoder), scales.known(encoder), first.is_measured) == (first, first, True)
    assert encoder.asked == asked


def test_a_service_is_measured_beside_a_search_and_tried_again_later(monkeypatch):
    scales, encoder, done = CosineScales(), Counting(), Event()
    encoder.fails = True
    measured = scales._try
    monkeypatch.setattr(scales, "_try", lambda it: (measured(it), done.set()))
    scales.measure_in_background(encoder)
    assert done.wait(timeout=10)
    assert scales.known(encoder) == UNSCALED
    encoder.fails = False
    done.clear()
    scales.measure_in_background(encoder)
    assert not done.is_set()
    scales._tries_from = 0.0
    scales.measure_in_background(encoder)
    assert done.wait(timeout=10)
    assert scales.known(encoder).is_measured
