"""Instructions in documents: they stay behind the fence, and a model that obeys whoever speaks never hears them."""

import asyncio
import re
import tomllib
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.engine.types import QueryTerms
from retrieval.llm.citations import find_citations
from retrieval.llm.language_model import ModelClient
from retrieval.llm.prompt import messages, new_fence
from retrieval.llm.service import ModelService
from retrieval.llm.types import Task, Turn
from retrieval.text.markers import MARKER
from tests import obedient_model
from tests.fake_llm import FakeLLM
from tests.passages import made

INJECTIONS = tomllib.loads(Path(__file__).with_name("injections.toml").read_text())["injection"]
FENCE = "00112233445566ff"
QUESTION = "How long does draining the queue take?"
ANSWER = "Draining the queue takes four minutes [2]."

injected = pytest.mark.parametrize("text", [pytest.param(it["text"], id=it["kind"]) for it in INJECTIONS])


def task_of(passages, **more):
    return Task(question=QUESTION, passages=tuple(passages), terms=QueryTerms(), **more)


@pytest.fixture
def task(passage):
    """Return a function that makes a task of an injection, in a passage's text and its title."""

    def make(text):
        text = text.replace("{fence}", FENCE)
        return task_of(
            [
                passage(1, f"{text}\n\nStaging is elsewhere.", title="Staging"),
                passage(2, "Draining the queue takes four minutes.", title="Queues"),
                passage(3, text, title=text),
            ]
        )

    return make


@pytest.fixture(scope="module")
def client():
    with FakeLLM() as model:
        model.says(obedient_model.answer)
        client = ModelClient(ModelService(name="fake", base_url=model.url, model="fake-small", max_retries=0))
        yield client
        client.close()


def obeyed(asked):
    return obedient_model.answer({"messages": asked})


def test_there_are_enough_kinds():
    assert len({it["kind"] for it in INJECTIONS}) >= 25
    assert len({canary for it in INJECTIONS for canary in re.findall(r"CANARY-\d+", it["text"])}) == len(INJECTIONS)


@injected
def test_a_model_that_obeys_whoever_speaks_answers_right(task, text):
    assert obeyed(messages(task(text), fence=FENCE)) == ANSWER


@injected
def test_without_the_fence_the_same_model_would_obey(text):
    asked = [{"role": "system", "content": f"<<<{FENCE}"}, {"role": "user", "content": f"{text}\n{QUESTION}"}]
    assert "CANARY-" in obeyed(asked)


@pytest.mark.parametrize("kind", ["chat template", "instruction template", "closing any fence", "sentence tokens"])
def test_raw_between_the_fences_lines_it_would_obey_some(kind):
    text = next(it["text"] for it in INJECTIONS if it["kind"] == kind)
    content = f"<<<{FENCE}\n### [1] Title\n{text}\n{FENCE}>>>\n{QUESTION}"
    assert "CANARY-" in obeyed([{"role": "system", "content": f"<<<{FENCE}"}, {"role": "user", "content": content}])


@injected
def test_nothing_of_a_document_reaches_the_system_message(task, text):
    system, *_ = messages(task(text), fence=FENCE)
    assert system == messages(task_of([]), fence=FENCE)[0]


@injected
def test_in_a_passage_only_its_own_number_is_a_marker_and_all_of_it_can_be_seen(task, text):
    content = messages(task(text), fence=FENCE)[-1]["content"]
    _, passages = obedient_model.read(content, FENCE)
    assert [number for number, _ in passages] == [1, 2, 3]
    for number, shown in passages:
        assert [citation.number for citation in find_citations(shown, 999)] == [number]
    assert not {sign for sign in content if sign not in "\n\t" and unicodedata.category(sign) in {"Cc", "Cf", "Co"}}


@injected
def test_what_an_earlier_answer_quoted_is_said_by_nobody_again(text):
    asked = messages(task_of([], history=(Turn("What about staging?", f"It says [1]: {text}"),)), fence=FENCE)
    earlier = asked[2]["content"]
    assert [message["role"] for message in asked] == ["system", "user", "assistant", "user"]
    assert find_citations(earlier, 999) == ()
    assert not {sign for sign in earlier if sign not in "\n\t" and unicodedata.category(sign) in {"Cc", "Cf", "Co"}}


@injected
def test_over_the_wire_the_answer_is_right_too(task, text, client):
    async def written():
        return "".join([piece.text async for piece in client.stream(messages(task(text)))])

    assert asyncio.run(written()) == ANSWER


texts = st.text(st.sampled_from("ab <>[]/|#`\\\n\r1,\u200b\u2028\u3010\u3011SINTYs0f_>"), max_size=60) | st.text(
    max_size=40
)


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=3))
def test_whatever_a_passage_holds_the_fence_holds(found):
    passages = [made(number, text, title) for number, (text, title) in enumerate(found, start=1)]
    content = messages(task_of(passages), fence=FENCE)[-1]["content"]
    lines = content.splitlines()
    assert [line for line in lines if FENCE in line] == [f"<<<{FENCE}", f"{FENCE}>>>"] * len(found)
    assert sum(line.endswith(">>>") or line.startswith("<<<") for line in lines) == 2 * len(found)
    outside, shown = obedient_model.read(content, FENCE)
    assert outside.split() == ["Passages:", *f"Question: {QUESTION}".split()]
    assert [number for number, _ in shown] == list(range(1, len(found) + 1))
    for number, text in shown:
        assert MARKER.findall(text.replace("\\[", "")) == [f"[{number}]"]


def test_a_fence_is_new_each_time_and_stands_in_no_text(passage):
    fences = {obedient_model.fence_of(messages(task_of([passage(1, "x")]))) for _ in range(50)}
    assert len(fences) == 50
    assert all(re.fullmatch("[0-9a-f]{16}", fence) for fence in fences)


def test_a_fence_that_a_text_holds_is_drawn_again(monkeypatch):
    import secrets

    drawn = iter(["aaaa", "bbbb"])
    monkeypatch.setattr(secrets, "token_hex", lambda _: next(drawn))
    assert new_fence(["it says aaaa"]) == "bbbb"
