"""POST /v1/chat/completions and GET /v1/models, without a stream."""

import re

import pytest

from corecube.models import ApiKey
from retrieval.models import Document, SearchRecord

IS = {"name": "author", "comparison_operator": "is", "value": "Ada"}


def test_it_works(world, ask):
    answer = ask("rollback staging database", world.key("bob")).json()
    message = answer["choices"][0]["message"]
    assert answer["object"] == "chat.completion"
    assert answer["model"] == "corecube"
    assert message["role"] == "assistant"
    assert "Run deployctl rollback before touching the staging database." in message["content"]
    assert answer["choices"][0]["finish_reason"] == "stop"


def test_annotations_span_the_markers_in_code_points(world, ask):
    message = ask("rollback staging database", world.key("bob")).json()["choices"][0]["message"]
    assert message["annotations"]
    for annotation in message["annotations"]:
        cited = annotation["url_citation"]
        assert annotation["type"] == "url_citation"
        assert message["content"][cited["start_index"] : cited["end_index"]].startswith("[")
        assert "/documents/" in cited["url"]


def test_citation_n_is_passage_n(world, ask):
    answer = ask("rollback", world.key("alice")).json()
    assert answer["citations"] == [result["url"] for result in answer["search_results"]]
    assert [result["number"] for result in answer["search_results"]] == list(range(1, len(answer["citations"]) + 1))


def test_search_results_say_which_are_cited(world, ask):
    answer = ask("rollback staging database", world.key("bob")).json()
    content = answer["choices"][0]["message"]["content"]
    flags = {result["number"]: result["cited"] for result in answer["search_results"]}
    assert flags == {number: f"[{number}]" in content for number in flags}
    assert set(flags.values()) == {True, False}


def test_usage_counts_the_context_and_the_answer(world, ask):
    answer = ask("rollback", world.key("bob")).json()
    usage = answer["usage"]
    trace = SearchRecord.objects.get(pk=answer["corecube"]["trace_id"]).trace
    assert usage["prompt_tokens"] == 1 + sum(passage["tokens"] for passage in trace["passages"])
    assert usage["completion_tokens"] > 0
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def test_corecube_says_how_the_answer_was_made(world, ask):
    answer = ask("rollback", world.key("bob")).json()
    own = answer["corecube"]
    asked_for = {"trace_id", "preset", "provider", "outcome", "answerability", "degraded", "unsupported"}
    assert own.keys() == asked_for | {"removed_citations", "notices", "usage_is_estimated"}
    # Quotes follow the verdict, so that no notice has to correct them.
    assert (own["answerability"]["verdict"], own["outcome"], own["notices"]) == ("answerable", "asserted", [])
    assert (own["unsupported"], own["removed_citations"]) == ([], 0)
    assert own["usage_is_estimated"]
    assert (own["preset"], own["provider"], own["degraded"]) == ("corecube", "extractive", [])
    assert answer["id"] == f"chatcmpl-{own['trace_id'].replace('-', '')}"


def test_a_question_in_a_language_that_full_text_search_does_not_read_says_so(world, ask):
    for name, is_admin in (("bob", False), ("alice", True)):
        own = ask("Wie viele rollback gibt es für die staging database?", world.key(name)).json()["corecube"]
        assert [notice["code"] for notice in own["notices"]] == ["unknown_language"]
        assert ("CORECUBE_TEXT_SEARCH_CONFIG" in own["notices"][0]["text"]) == is_admin
        assert own["degraded"] == []


def test_a_text_that_is_too_long_to_search_says_so_and_its_question_is_searched(world, ask):
    text = "Our move to the second floor was a success. " * 20
    cut = ask(text, world.key("bob")).json()["corecube"]["notices"]
    assert [notice["code"] for notice in cut] == ["question_cut"]
    assert re.fullmatch(r"Only the first \d{3} of 879 characters of the question were searched\.", cut[0]["text"])
    asked = ask(f"{text}How do we roll back staging?", world.key("bob")).json()["corecube"]
    assert asked["notices"] == []
    assert SearchRecord.objects.get(pk=asked["trace_id"]).query == "How do we roll back staging?"


def test_an_explanation_is_what_search_would_have_answered(world, ask):
    explain = ask("rollback", world.key("bob"), corecube={"explain": True}).json()["corecube"]["explain"]
    assert explain["hits"][0]["explain"]["contributions"]
    assert explain["explain"]["spans"]


def test_it_refuses_honestly_when_the_sources_do_not_say(world, ask):
    content = ask("Who won the regatta?", world.key("bob")).json()["choices"][0]["message"]["content"]
    assert content.startswith("I couldn't find this in your documents.")


def test_it_refuses_for_charlie_who_sees_nothing(world, ask):
    answer = ask("rollback", world.key("charlie")).json()
    assert answer["choices"][0]["message"]["content"].startswith("I couldn't find this in your documents.")
    assert (answer["citations"], answer["search_results"]) == ([], [])


def test_the_last_user_message_is_the_question(world, post):
    messages = [
        {"role": "system", "content": "You are a pirate."},
        {"role": "user", "content": "zanzibar"},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "user", "content": [{"type": "text", "text": "rollback"}, {"type": "text", "text": "staging"}]},
        {"role": "assistant", "content": "Arr."},
    ]
    answer = post("/v1/chat/completions", {"model": "corecube", "messages": messages}, world.key("bob")).json()
    assert SearchRecord.objects.get(pk=answer["corecube"]["trace_id"]).query == "rollback\nstaging"


def test_unknown_parameters_are_ignored(world, ask):
    more = {"temperature": 0.2, "logit_bias": {}, "seed": 7, "user": "me", "n": 1, "tools": [], "stream": None}
    assert ask("rollback", world.key("bob"), **more).status_code == 200


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"n": 2}, "n"),
        ({"n": 0}, "n"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice"),
        ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required"}}}, "tool_choice"),
        ({"function_call": {"name": "f"}}, "function_call"),
        ({"corecube": {"filters": {"type": "pdf"}}}, "corecube.filters"),
        ({"corecube": {"filters": "pdf"}}, "corecube.filters"),
        ({"corecube": {"filters": {"conditions": [{**IS, "comparison_operator": "like"}]}}}, "corecube.filters"),
        ({"corecube": {"filters": {"conditions": [{**IS, "year": 2025}]}}}, "corecube.filters"),
        ({"corecube": {"filters": {"conditions": [{**IS, "value": float("inf")}]}}}, "corecube.filters"),
    ],
)
def test_what_is_not_supported_is_refused(world, ask, more, param):
    response = ask("rollback", world.key("bob"), **more)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (400, "unsupported_parameter", param)
    assert response.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("choice", [None, "none", "auto", {"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}])
def test_tools_that_may_be_called_are_not(world, ask, choice):
    tools = [{"type": "function", "function": {"name": "f"}}]
    answer = ask("rollback staging database", world.key("bob"), tools=tools, tool_choice=choice).json()
    assert "deployctl rollback" in answer["choices"][0]["message"]["content"]
    assert "Ignored: tools." in answer["corecube"]["notices"][-1]["text"]


def test_of_a_message_with_an_image_the_text_is_searched_and_the_rest_named(world, ask):
    parts = [{"type": "text", "text": "rollback staging"}, {"type": "image_url", "image_url": {"url": "data:x"}}]
    answer = ask("", world.key("bob"), messages=[{"role": "user", "content": parts}]).json()
    assert SearchRecord.objects.get(pk=answer["corecube"]["trace_id"]).query == "rollback staging"
    assert "image_url in messages" in answer["corecube"]["notices"][-1]["text"]
    only_image = [{"role": "user", "content": parts[1:]}]
    assert ask("", world.key("bob"), messages=only_image).json()["error"]["code"] == "empty_query"


def test_the_extension_narrows_the_scope_and_the_number(world, ask):
    body = {"corecube": {"scope": {"include": ["ledger"]}, "top_k": 1}}
    results = ask("rollback", world.key("alice"), **body).json()["search_results"]
    assert [result["source"]["connection"] for result in results] == ["ledger"]


@pytest.fixture
def marked(world):
    """Give the ledger's and the runbooks' documents metadata."""

    Document.objects.filter(connection=world.ledger).update(metadata={"author": "Ada", "pages": "12"})
    Document.objects.filter(title__startswith="Rolling").update(metadata={"author": "Bob", "pages": "7"})


def is_(name, value, operator="is"):
    return {"name": name, "comparison_operator": operator, "value": value}


@pytest.mark.parametrize(
    ("conditions", "logical", "kept"),
    [
        ([is_("author", "ada")], "and", {"ledger"}),
        ([is_("author", "ada"), is_("pages", 10, "<")], "and", set()),
        ([is_("author", "ada"), is_("pages", 10, "<")], "or", {"ledger", "runbooks"}),
        ([is_(["editor", "author"], ["bob", "eve"], "in")], "and", {"runbooks"}),
        ([is_("connection", "vault")], "and", {"vault"}),
        ([is_("title", "costs", "contains")], "and", {"ledger"}),
        ([is_("author", None, "empty"), is_("source_type", "markdown")], "and", {"vault"}),
        ([is_("modified_at", "2001-01-01", "before")], "and", set()),
        ([is_("modified_at", "2001-01-01", "after"), is_("author", "ada")], "and", {"ledger"}),
        ([is_("au%(x)s\0'", "ada")], "and", set()),
        ([is_("author", "a\0da")], "and", set()),
        ([is_("author", ["ada\0", "eve"], "in")], "and", {"ledger"}),
        ([], "and", {"ledger", "runbooks", "vault"}),
    ],
)
def test_filters_leave_the_documents_whose_metadata_meet_them(world, marked, ask, conditions, logical, kept):
    filters = {"logical_operator": logical, "conditions": conditions}
    answer = ask("rollback", world.key("alice"), corecube={"filters": filters}).json()
    assert {it["source"]["connection"] for it in answer["search_results"]} == kept


def test_filters_open_nothing_and_are_named_in_the_trace(world, marked, ask):
    answer = ask("rollback", world.key("bob"), corecube={"filters": {"conditions": [is_("author", "ada")]}}).json()
    assert answer["search_results"] == []
    trace = SearchRecord.objects.get(pk=answer["corecube"]["trace_id"]).trace
    assert "Limited to documents that meet conditions on: author." in str(trace)


def test_the_extension_can_name_the_preset(world, ask):
    answer = ask("rollback", world.key("bob"), model="gpt-4o", corecube={"preset": "corecube"}).json()
    assert answer["model"] == "corecube"


@pytest.mark.parametrize(
    ("more", "param"), [({"model": "gpt-4o"}, "model"), ({"corecube": {"preset": "helix9"}}, "corecube.preset")]
)
def test_an_unknown_model_is_not_found(world, ask, more, param):
    response = ask("rollback", world.key("bob"), **more)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (404, "model_not_found", param)


def test_a_model_that_the_key_may_not_use_is_not_found(world, ask, get):
    key, secret = ApiKey.issue(user=world.bob, name="narrow")
    key.presets = ["helix"]
    key.save()
    assert [it["id"] for it in get("/v1/models", secret).json()["data"]] == ["helix"]
    assert get("/v1/models/corecube", secret).status_code == 404
    refused, unknown = ask("rollback", secret), ask("rollback", secret, model="gpt-4o")
    assert refused.status_code == 404
    assert refused.json() == unknown.json()
