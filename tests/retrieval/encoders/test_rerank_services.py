import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.encoders.remote_reranker import SERVICE_KINDS
from retrieval.errors import RerankError

TEXTS = ["first", "second", "third"]
REQUESTS = {
    "cohere": {"model": "m", "query": "q", "documents": TEXTS, "top_n": 3},
    "jina": {"model": "m", "query": "q", "documents": TEXTS, "top_n": 3, "return_documents": False},
    "tei": {"query": "q", "texts": TEXTS, "raw_scores": False, "truncate": True},
    "vllm": {"model": "m", "query": "q", "documents": TEXTS, "top_n": 3},
    "voyage": {"model": "m", "query": "q", "documents": TEXTS, "top_k": 3},
}
#: What each service answers when the third text is the best: sorted by score, each in its own words.
ANSWERS = {
    "cohere": {
        "id": "1",
        "results": [
            {"index": 2, "relevance_score": 0.9},
            {"index": 0, "relevance_score": 0.5},
            {"index": 1, "relevance_score": 0.01},
        ],
        "meta": {},
    },
    "jina": {
        "model": "m",
        "usage": {"total_tokens": 9},
        "results": [
            {"index": 2, "relevance_score": 0.9},
            {"index": 0, "relevance_score": 0.5},
            {"index": 1, "relevance_score": 0.01},
        ],
    },
    "tei": [{"index": 2, "score": 0.9}, {"index": 0, "score": 0.5}, {"index": 1, "score": 0.01}],
    "vllm": {
        "id": "1",
        "results": [
            {"index": 2, "document": {"text": "third"}, "relevance_score": 0.9},
            {"index": 0, "document": {"text": "first"}, "relevance_score": 0.5},
            {"index": 1, "document": {"text": "second"}, "relevance_score": 0.01},
        ],
    },
    "voyage": {
        "object": "list",
        "data": [
            {"index": 2, "relevance_score": 0.9},
            {"index": 0, "relevance_score": 0.5},
            {"index": 1, "relevance_score": 0.01},
        ],
    },
}


def test_every_kind_is_tried_here():
    assert set(SERVICE_KINDS) == set(REQUESTS) == set(ANSWERS)


@pytest.mark.parametrize("kind", SERVICE_KINDS)
def test_a_request_has_the_services_shape(kind):
    assert SERVICE_KINDS[kind].request("q", TEXTS, model="m") == REQUESTS[kind]


@pytest.mark.parametrize("kind", SERVICE_KINDS)
def test_scores_come_in_the_order_of_the_texts(kind):
    assert SERVICE_KINDS[kind].scores(ANSWERS[kind], count=3) == [0.5, 0.01, 0.9]


def row(index, score=0.5):
    return {"index": index, "score": score}


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "text",
        7,
        {},
        {"results": []},
        [],
        [row(0)],
        [row(0), row(0)],
        [row(0), row(1), row(1)],
        [row(0), row(2)],
        [row(0), row(-1)],
        [row(0), row("1")],
        [row(0), row(1.0)],
        [row(0), {"index": True, "score": 0.5}],
        [row(0), {"score": 0.5}],
        [row(0), {"index": 1}],
        [row(0), [1, 0.5]],
        [row(0), row(1, "0.5")],
        [row(0), row(1, None)],
        [row(0), {"index": 1, "score": True}],
        [row(0), row(1, math.nan)],
        [row(0), row(1, math.inf)],
        [row(0), row(1, 10**400)],
        [row(0), row(1, 7.3)],
        [row(0), row(1, -1.01)],
    ],
)
def test_anything_but_one_score_for_each_text_is_garbage(answer):
    with pytest.raises(RerankError, match="invalid response"):
        SERVICE_KINDS["tei"].scores(answer, count=2)


@pytest.mark.parametrize("kind", ["cohere", "jina", "vllm", "voyage"])
def test_an_answer_without_its_rows_is_garbage(kind):
    for answer in ([], {}, {"results": {}, "data": {}}, {"detail": "no"}):
        with pytest.raises(RerankError, match="invalid response"):
            SERVICE_KINDS[kind].scores(answer, count=0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["index", "score", "relevance_score", "results", "data"]), inner)
    ),
    max_leaves=12,
)


@given(answer=JSON, kind=st.sampled_from(sorted(SERVICE_KINDS)), count=st.integers(0, 2))
def test_whatever_is_answered_gives_scores_or_a_rerank_error(answer, kind, count):
    try:
        scores = SERVICE_KINDS[kind].scores(json.loads(json.dumps(answer)), count=count)
    except RerankError:
        return
    assert len(scores) == count
    assert all(-1 <= score <= 1 for score in scores)


@given(scores=st.lists(st.floats(-1, 1), min_size=1, max_size=30), seed=st.randoms())
def test_the_order_of_the_rows_does_not_matter(scores, seed):
    rows = [row(index, score) for index, score in enumerate(scores)]
    seed.shuffle(rows)
    assert SERVICE_KINDS["tei"].scores(rows, count=len(scores)) == scores
