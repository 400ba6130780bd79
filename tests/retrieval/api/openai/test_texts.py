"""Completions of the earlier API, embeddings and reranking, with the stock client and as Cohere and Jina send them."""

import numpy as np
import openai
import pytest

from retrieval.index import active

TEXTS = ["Draining the queue takes four minutes.", "The captain rolls back the release.", "Costs in March."]


@pytest.fixture
def bob(connect, world):
    return connect(world.key("bob"))


def test_a_prompt_is_answered_as_a_chat_is(bob):
    asked = {"model": "corecube", "prompt": "rollback staging database"}
    whole = bob.completions.create(**asked, max_tokens=50)
    assert "deployctl rollback before touching the staging database. [1]" in whole.choices[0].text
    assert (whole.object, whole.choices[0].finish_reason) == ("text_completion", "stop")
    assert whole.citations
    chunks = list(bob.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    assert "".join(it.choices[0].text for it in chunks if it.choices) == whole.choices[0].text
    assert chunks[-1].usage.total_tokens == whole.usage.total_tokens
    with pytest.raises(openai.BadRequestError) as caught:
        bob.completions.create(model="corecube", prompt=["one", "two"])
    assert caught.value.param == "prompt"


def test_embeddings_are_those_of_searches(bob):
    encoder = active.encoder()
    found = bob.embeddings.create(model=encoder.name, input=TEXTS)  # The client asks for base64.
    assert np.allclose([it.embedding for it in found.data], encoder.encode_documents(TEXTS), atol=1e-6)
    assert found.usage.prompt_tokens == sum(encoder.count_tokens(TEXTS))
    plain = bob.embeddings.create(
        model=encoder.name,
        input="rollback",
        encoding_format="float",
        dimensions=encoder.dim,
        extra_body={"input_type": "query"},
    )
    assert np.allclose(plain.data[0].embedding, encoder.encode_query("rollback"), atol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"model": "text-embedding-3-small"}, "model"),
        ({"dimensions": 8}, "dimensions"),
        ({"input": []}, "input"),
        ({"input": ["a", " "]}, "input"),
        ({"input": ["a"] * 257}, "input"),
        ({"input": "a" * 200_001}, "input"),
    ],
)
def test_what_cannot_be_embedded_is_refused(bob, wrong, param):
    with pytest.raises(openai.BadRequestError) as caught:
        bob.embeddings.create(**{"model": active.encoder().name, "input": "a", **wrong})
    assert caught.value.param == param


def test_tokens_in_place_of_text_are_refused(bob):
    with pytest.raises(openai.UnprocessableEntityError):
        bob.embeddings.create(model=active.encoder().name, input=[[1, 2, 3]])


@pytest.mark.parametrize(("path", "has_texts"), [("/v1/rerank", True), ("/v2/rerank", False)])
def test_texts_are_ordered_by_relevance(post, world, path, has_texts):
    query = "who rolls back the release"
    body = {"model": "rerank-v3.5", "query": query, "documents": [*TEXTS[:2], {"text": TEXTS[2]}], "top_n": 2}
    answer = post(path, body, world.key("bob")).json()
    assert answer["results"][0]["index"] == 1
    assert len(answer["results"]) == 2
    scores = [it["relevance_score"] for it in answer["results"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= it <= 1 for it in scores)
    assert answer["results"][0].get("document") == ({"text": TEXTS[1]} if has_texts else None)
    assert answer["model"] == f"cosine of {active.encoder().name}"


@pytest.mark.parametrize("wrong", [{"documents": []}, {"documents": ["a", ""]}, {"query": ""}, {"top_n": 0}])
def test_what_cannot_be_reranked_is_refused(post, world, wrong):
    answer = post("/v2/rerank", {"query": "a", "documents": ["a"], **wrong}, world.key("bob"))
    assert answer.status_code in {400, 422}
    assert answer.json()["error"]["param"] == next(iter(wrong))
