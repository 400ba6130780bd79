"""The tiny cross-encoder's outputs are sums over the text's tokens of two columns of TABLE, worked out by hand."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from retrieval.encoders.cross_encoder import CrossEncoder, load_cross_encoder
from retrieval.encoders.tokenizer import PairTokenizer
from retrieval.engine.types import ScoreType
from retrieval.errors import EncoderError, ModelMissingError, RerankError, RerankTimeoutError

#: Columns 0 and 2 of alpha are 2 and 0, of beta 0 and 3, of the closing mark 0 and 0: column 2 less column 0.
TEXTS = {"alpha": -2, "beta": 3, "": 0, "beta alpha beta": 4, "alpha alpha": -4, "beta beta beta": 9}


def scores(directory, texts, *, query="alpha", **options):
    return load_cross_encoder(directory, **options).score(query, texts, timeout_seconds=30)


@pytest.mark.parametrize("batch_tokens", [0, 14, 1000])
@pytest.mark.parametrize("threads", [1, 3])
def test_two_outputs_score_the_second_less_the_first_in_input_order(make_pair_model, batch_tokens, threads):
    directory = make_pair_model(batch_tokens=batch_tokens)
    assert scores(directory, list(TEXTS), threads=threads) == list(TEXTS.values())


@pytest.mark.parametrize("network", [{"columns": (2,)}, {"columns": (2,), "flat": True}])
def test_a_single_output_is_the_score(make_pair_model, network):
    assert scores(make_pair_model(network=network), ["beta", "alpha", "beta beta"]) == [3, 0, 6]


def test_the_query_is_no_part_of_the_text(make_pair_model):
    directory = make_pair_model()
    assert scores(directory, ["beta"], query="beta beta") == scores(directory, ["beta"], query="alpha") == [3]


def test_a_long_pair_loses_the_end_of_its_text_only(make_pair_model):
    # Eleven tokens: three marks, two of the query, six of the text.
    directory = make_pair_model(max_tokens=11)
    assert scores(directory, ["beta " * 5, "beta " * 6, "beta " * 6 + "alpha " * 50], query="alpha alpha") == [
        15,
        18,
        18,
    ]


def test_a_query_longer_than_the_model_leaves_half_of_the_room_to_the_text(make_pair_model):
    # Of eight tokens beside the marks the query keeps four.
    assert scores(make_pair_model(max_tokens=11), ["beta " * 9], query="alpha " * 500) == [12]


def test_the_cut_query_is_its_beginning(make_pair_model):
    tokenizer = PairTokenizer(make_pair_model() / "tokenizer.json", max_tokens=11)

    def encoded(query):
        return [(pair.ids, pair.type_ids) for pair in tokenizer.encode(query, ["beta"])]

    whole = encoded("alpha beta alpha beta query query")
    assert whole == encoded("alpha beta alpha beta")
    assert whole != encoded("alpha beta alpha")


def test_marks_written_in_a_text_are_read_as_text(make_pair_model):
    tokenizer = PairTokenizer(make_pair_model() / "tokenizer.json", max_tokens=30)
    assert tokenizer.encode("alpha", ["[SEP] beta"])[0].ids.count(3) == 2


def test_no_texts_have_no_scores(make_pair_model):
    assert scores(make_pair_model(), []) == []


def test_scores_are_logits_and_final(make_pair_model):
    encoder = load_cross_encoder(make_pair_model())
    assert (encoder.name, encoder.score_type, encoder.blend_weight) == ("tiny-pairs", ScoreType.LOGIT, None)


def test_many_threads_may_score_at_once(make_pair_model):
    encoder = load_cross_encoder(make_pair_model(), threads=2)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: encoder.score("alpha", list(TEXTS), timeout_seconds=30), range(40)):
            assert found == list(TEXTS.values())


class Steps:
    """A clock that goes on by a second whenever it is read."""

    def __init__(self):
        self.now = 0
        self._lock = threading.Lock()

    def __call__(self):
        with self._lock:
            self.now += 1
            return self.now


@pytest.fixture
def slow(make_pair_model):
    """Return a cross-encoder of one thread that takes a second a text, and a list of its runs."""
    loaded = load_cross_encoder(make_pair_model(), threads=1)
    runs = []

    class Counted:
        def get_inputs(self):
            return loaded._session.get_inputs()

        def run(self, names, feed):
            runs.append(feed["input_ids"].shape)
            return loaded._session.run(names, feed)

    clock = Steps()
    return CrossEncoder(loaded.manifest, loaded._tokenizer, Counted(), threads=1, clock=clock), runs


def test_it_stops_before_a_batch_that_would_end_too_late(slow):
    encoder, runs = slow
    # The clock is at 1 when the time starts. Tokens: 2 to 3. Texts: 4 to 5, 6 to 7, 8 to 9. At 10 a text would end
    # at 11, and 1 + 9.5 = 10.5.
    with pytest.raises(RerankTimeoutError):
        encoder.score("alpha", list(TEXTS), timeout_seconds=9.5)
    assert len(runs) == 3


def test_it_finishes_when_the_last_batch_ends_in_time(slow):
    encoder, runs = slow
    # Six texts; the last starts at 14 and ends at 15 = 1 + 14.
    assert encoder.score("alpha", list(TEXTS), timeout_seconds=14) == list(TEXTS.values())
    assert len(runs) == 6


def test_a_model_that_fails_is_a_rerank_error_without_any_text(make_pair_model, make_tokenizer):
    directory = make_pair_model()
    make_tokenizer(directory / "tokenizer.json", extra=("unheard",))
    encoder = load_cross_encoder(directory)
    with pytest.raises(RerankError, match="'tiny-pairs' failed") as caught:
        encoder.score("alpha", ["unheard"], timeout_seconds=30)
    assert "unheard" not in str(caught.value)


def test_a_model_that_gives_more_than_two_outputs_is_refused(make_pair_model):
    with pytest.raises(EncoderError, match=r"of shape \(1, 3\); it is not a cross-encoder"):
        load_cross_encoder(make_pair_model(network={"columns": (0, 1, 2)}))


def test_an_embedding_model_is_no_cross_encoder(make_model, make_pair_model):
    from retrieval.encoders import load_encoder

    with pytest.raises(EncoderError, match="'tiny' has the kind 'embedding', not 'cross-encoder'"):
        load_cross_encoder(make_model())
    with pytest.raises(EncoderError, match="'tiny-pairs' has the kind 'cross-encoder', not 'embedding'"):
        load_encoder(make_pair_model())


def test_a_missing_model_says_how_to_get_it(tmp_path):
    with pytest.raises(ModelMissingError, match=r"manage\.py models fetch absent"):
        load_cross_encoder(tmp_path / "absent")


def test_a_manifest_without_room_for_a_text_is_damaged(make_pair_model):
    import json

    path = make_pair_model() / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"max_tokens": 6}))
    with pytest.raises(EncoderError, match="is damaged"):
        load_cross_encoder(path.parent)
