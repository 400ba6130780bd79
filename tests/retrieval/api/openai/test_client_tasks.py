"""Titles, tags and follow-up questions that chat clients request for themselves."""

import json

import pytest

from retrieval.api.openai.client_tasks import reply
from retrieval.llm.types import Turn
from retrieval.models import SearchRecord

HISTORY = "<chat_history>\nUSER: How much leave is there?\nASSISTANT: 27 days. [1]\n</chat_history>"
ASKED = (Turn("How much leave is there?", "27 days."),)


def open_webui(task, form):
    return f"### Task:\n{task}\n### Output:\nJSON format: {form}\n### Chat History:\n{HISTORY}"


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        (
            open_webui("Generate a concise title.", '{ "title": "your concise title" }'),
            {"title": "How much leave is there"},
        ),
        (open_webui("Generate 1-3 broad tags.", '{ "tags": ["tag1", "tag2"] }'), {"tags": []}),
        (open_webui("Suggest follow-up questions.", '{ "follow_ups": ["One?"] }'), {"follow_ups": []}),
        (open_webui("Determine search queries.", '{ "queries": ["query"] }'), {"queries": []}),
    ],
)
def test_open_webuis_tasks_get_the_json_that_they_ask_for(prompt, answer):
    assert json.loads(reply(prompt, "", ())) == answer


def test_a_title_is_the_first_question_cut_at_a_word():
    libre = "Provide a concise, 5-word-or-less title for the conversation, using title case conventions."
    assert (
        reply(f"{libre}\n\nConversation:\nUser: How much leave is there?\nAI: 27 days", "", ())
        == "How much leave is there"
    )
    assert reply('||>User:\n"How much leave?"\n||>Response:\n"27"', libre, ()) == "How much leave"
    next_chat = "Please generate a four to five word title summarizing our conversation without any lead-in."
    assert reply(next_chat, "", ASKED) == "How much leave is there"
    long = reply(next_chat, "", (Turn(f"Why {'does it rain so much ' * 9}", ""),))
    assert (len(long) <= 61, long.endswith("…")) == (True, True)


@pytest.mark.parametrize(
    ("question", "system", "history"),
    [
        ("What is the title of the chat policy?", "", ASKED),
        ("Generate a title for the conversation", "", ()),
        ("How much leave is there?", "Write a title for the conversation when asked.", ASKED),
        ("### Task: fix the pump. What does the manual say?", "", ()),
    ],
)
def test_questions_to_the_documents_are_none(question, system, history):
    assert reply(question, system, history) is None


def test_nothing_is_searched_for_them(world, ask):
    prompt = open_webui("Generate a concise title.", '{ "title": "..." }')
    answer = ask(prompt, world.key("bob")).json()
    assert json.loads(answer["choices"][0]["message"]["content"]) == {"title": "How much leave is there"}
    streamed = b"".join(ask(prompt, world.key("bob"), stream=True).streaming_content).decode()
    assert "How much leave is there" in streamed
    assert streamed.endswith("data: [DONE]\n\n")
    assert not SearchRecord.objects.exists()
    assert ask(prompt, world.key("bob"), model="gpt-4o").status_code == 404
