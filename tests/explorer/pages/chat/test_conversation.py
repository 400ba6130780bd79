"""Questions and answers as the chat page shows them."""

import uuid

import pytest

from explorer.pages.chat.panels import exchange_panel, problem_text
from retrieval.answers.conversations.reading import Exchange, Reference, ReferenceState
from retrieval.engine.types import ChunkId
from retrieval.models import Message

ANSWER = uuid.UUID(int=5)
CONVERSATION = uuid.UUID(int=6)
CHUNK = ChunkId(uuid.UUID(int=1), 3)


def reference(number=1, **changes):
    given = {
        "cited": True,
        "state": ReferenceState.CURRENT,
        "score": 0.8349,
        "chunk": CHUNK,
        "title": "Rolling <back>",
        "heading_path": ("Staging", "Database"),
        "connection": "Runbooks",
        "text": "Run deployctl\n\nrollback first.",
        "pages": (3, 4),
    }
    return Reference(number=number, **{**given, **changes})


def exchange(text="Roll it back [1].", *references, state=Message.State.DONE, message=None, **changes):
    answer = Message(pk=ANSWER, conversation_id=CONVERSATION, role=Message.Role.ASSISTANT, **(message or {}))
    given = {"question": "How?", "standalone": "", "withheld": False, "problem": ""}
    return exchange_panel(
        Exchange(answer=answer, text=text, state=state, references=references or (reference(),), **{**given, **changes})
    )


def test_a_marker_becomes_a_chip_that_leads_to_its_source():
    panel = exchange()
    chip = f'href="#source-{ANSWER}-1" data-cite aria-label="Source 1: Rolling &lt;back&gt;">1</a>.</p>'
    assert chip in panel["html"]
    assert panel["cited"][0]["anchor"] == f"source-{ANSWER}-1"


def test_a_source_says_where_it_stands():
    (source,) = exchange()["cited"]
    assert (source["reference"].connection, source["path"], source["pages"], source["score"]) == (
        "Runbooks",
        "Staging \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} Database",
        "pp. 3\N{EN DASH}4",
        "0.83",
    )
    assert source["text"] == "Run deployctl\n\nrollback first."
    assert source["address"] == f"/documents/{CHUNK.document_id}/#chunk-3"
    assert source["warning"] == ""


def test_what_is_cited_and_what_was_considered_stand_apart():
    panel = exchange("Yes [2].", reference(1, cited=False), reference(2), reference(3, cited=False))
    assert [it["reference"].number for it in panel["cited"]] == [2]
    assert [it["reference"].number for it in panel["considered"]] == [1, 3]
    assert [it["text"] for it in panel["considered"]] == ["", ""]


def test_a_source_that_is_gone_is_flagged_and_leads_nowhere():
    stale = reference(state=ReferenceState.STALE, chunk=None, title="", text="", pages=None, heading_path=())
    panel = exchange("Yes [1].", stale)
    assert "Changed or deleted" in panel["cited"][0]["warning"]
    assert panel["cited"][0]["address"] == ""
    assert 'class="citation cite is-gone"' in panel["html"]
    assert panel["read"].is_stale


def test_a_hidden_source_tells_nothing():
    hidden = Reference(number=2, cited=False, state=ReferenceState.HIDDEN)
    panel = exchange("Yes [1].", reference(), hidden)
    (source,) = panel["considered"]
    assert source["warning"] == "No longer visible to you."
    assert (source["reference"].title, source["reference"].connection) == ("", "")
    assert (source["path"], source["text"], source["score"]) == ("", "", "")


def test_an_unsupported_sentence_is_marked_with_its_explanation():
    text = "Roll it back [1]. It takes <nine> days [1]."
    doubt = {"start": 18, "end": len(text), "reason": "number", "explanation": 'No "nine" there.'}
    panel = exchange(text, unsupported=(doubt,))
    assert '<span class="doubt">It takes &lt;nine&gt; days' in panel["html"]
    assert "No &quot;nine&quot; there." in panel["html"]
    assert panel["doubts"] == 1


def test_an_answer_brings_no_html_of_its_own():
    html = exchange('<img src=x onerror="y"> [a](javascript:b) **bold**')["html"]
    assert "<img" not in html
    assert "<a" not in html
    assert "<strong>bold</strong>" in html


@pytest.mark.parametrize(
    ("state", "message", "spoken"),
    [
        (Message.State.DONE, {}, "Answer ready, with 1 source."),
        (Message.State.DONE, {"is_refused": True}, "Not found in your documents."),
        (Message.State.STOPPED, {}, "The answer was stopped."),
        (Message.State.FAILED, {}, "The answer was interrupted. The language model took too long."),
    ],
)
def test_how_an_answer_ended_is_announced(state, message, spoken):
    panel = exchange(state=state, message=message, problem="answer_timeout")
    assert panel["spoken"] == spoken
    assert panel["is_retried"] == (state in {Message.State.STOPPED, Message.State.FAILED})
    assert not panel["is_open"]


def test_an_answer_without_sources_is_announced_without_a_number():
    assert exchange("You're welcome.", reference(cited=False))["spoken"] == "Answer ready."


@pytest.mark.parametrize("state", [Message.State.WAITING, Message.State.WRITING])
def test_an_answer_that_is_not_there_yet_is_open(state):
    panel = exchange("", state=state)
    assert panel["is_open"]
    assert not panel["is_retried"]


def test_every_failure_has_a_sentence():
    assert problem_text("answer_rate_limited") == "The language model receives too many requests. Try again shortly."
    assert problem_text("whatever") == "Something went wrong while the answer was written."
