"""Null for an optional field is the same as leaving the field out, in every API and for every tool."""

import json

import pytest

from retrieval.agents.tools import TOOLS
from tests.retrieval.api.test_ways_in import ADMINS, DESCRIPTIONS, READS, TOOL_ARGUMENTS

#: What reads a model's files, which a test's encoder has none of.
NEEDS_A_MODEL = "POST /api/v1/indexes"
DIFY = "/api/dify/retrieval"
CHAT = "/v1/chat/completions"
#: What OpenAI's clients send null for.
OPENAI = (
    *("stop", "temperature", "top_p", "user", "stream", "stream_options", "tools", "tool_choice", "n", "max_tokens"),
    *(
        "max_completion_tokens",
        "metadata",
        "response_format",
        "logit_bias",
        "logprobs",
        "seed",
        "functions",
        "corecube",
    ),
    *("presence_penalty", "frequency_penalty", "parallel_tool_calls", "modalities", "store", "corecube"),
)


class Nulls:
    """Adds null for every optional field to a body, as a description declares it."""

    def __init__(self, described):
        self.described = described
        self.added = set()

    def into(self, schema, body, place=()):
        schema = self.resolved(schema)
        if not isinstance(body, dict):
            return body
        required = schema.get("required", ())
        filled = dict(body)
        for name, of in schema.get("properties", {}).items():
            if name in body:
                filled[name] = self.into(of, body[name], (*place, name))
            elif name not in required:
                filled[name] = None
                self.added.add(".".join((*place, name)))
        return filled

    def resolved(self, schema):
        for one in (schema, *schema.get("allOf", ()), *schema.get("anyOf", ())):
            if reference := one.get("$ref"):
                return self.described["components"]["schemas"][reference.rsplit("/", 1)[1]]
        return schema


def reading_json(described):
    """Yield each operation that reads JSON: its name and the schema of its body."""
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {})
            if schema := content.get("application/json", {}).get("schema"):
                yield f"{method.upper()} {path}", schema


def nested(name, body):
    """Return a body with what its objects are made of, so that their fields are walked too."""
    more = {
        "POST /api/v1/search": {"scope": {}},
        "POST /api/v1/connections": {"name": "Newcomers"},
        "POST /v1/chat/completions": {"corecube": {"scope": {}}, "stream_options": {}},
        "POST /v1/completions": {"corecube": {"scope": {}}, "stream_options": {}},
        "POST /v1/responses": {"corecube": {"scope": {}}, "text": {}},
        "POST /api/dify/retrieval": {"retrieval_setting": {}, "metadata_condition": {}},
        "POST /api/v1/context-pack": {"filters": {}},
    }
    return body | more.get(name, {})


def complaint(response):
    """Return the field that a request was refused for, empty for none."""
    if response.status_code != 422:
        return ""
    said = response.json()
    return said["error_msg"].partition(":")[0] if "error_msg" in said else said["error"]["param"] or ""


@pytest.mark.parametrize("description", DESCRIPTIONS)
def test_no_optional_field_is_refused_for_its_null(world, client, post, description):
    described = client.get(description).json()
    secret = world.key("alice")
    refused = {}
    for name, schema in reading_json(described):
        if name.startswith(NEEDS_A_MODEL):
            continue
        nulls = Nulls(described)
        body = nulls.into(schema, nested(name, {**READS, **ADMINS}[name]))
        method, path = name.split(" ")
        path = path.format(
            slug="runbooks",
            name="corecube",
            job_id="0" * 32,
            question_set="none",
            run_id="0" * 32,
            sweep_id="0" * 32,
            experiment_id="0" * 32,
            key_id="0" * 32,
            number=1,
        )
        sent = json.dumps(body).replace("HIDDEN", "0" * 32).replace("TRACE", "0" * 32)
        headers = {"Authorization": f"Bearer {secret}"}
        response = getattr(client, method.lower())(path, sent, content_type="application/json", headers=headers)
        assert response.status_code < 500, (name, response.content)
        if complaint(response) in nulls.added:
            refused[name] = complaint(response)
    assert refused == {}


def test_the_chat_endpoint_takes_null_for_whatever_a_client_leaves_unset(world, post):
    asked = {"model": "corecube", "messages": [{"role": "user", "content": "rollback staging", "name": None}]}
    secret = world.key("bob")
    plain = post(CHAT, asked, secret).json()
    nulls = post(CHAT, asked | dict.fromkeys(OPENAI), secret).json()
    assert nulls["choices"][0]["message"] == plain["choices"][0]["message"]
    within = {"stream_options": {"include_usage": None}, "corecube": {"scope": {"include": None}, "top_k": None}}
    assert post(CHAT, asked | within, secret).status_code == 200


@pytest.mark.parametrize(
    "sent",
    [
        {"retrieval_setting": None, "metadata_condition": None},
        {"retrieval_setting": {"top_k": None, "score_threshold": None}},
        {"metadata_condition": {"logical_operator": None, "conditions": None}},
        {"metadata_condition": {"logical_operator": "or", "conditions": None}},
        {"metadata_condition": {"conditions": [{"name": "author", "comparison_operator": "empty", "value": None}]}},
    ],
)
def test_a_null_of_dify_is_as_if_it_was_left_out(world, post, sent):
    asked = {"knowledge_id": "all", "query": "rollback staging"}
    secret = world.key("bob")
    answer = post(DIFY, asked | sent, secret)
    assert answer.status_code == 200
    left_out = {name: {key: it for key, it in value.items() if it is not None} for name, value in sent.items() if value}
    assert answer.json() == post(DIFY, asked | left_out, secret).json()


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"query": None}, "query"),
        ({"knowledge_id": None}, "knowledge_id"),
        ({"retrieval_setting": {"top_k": "many"}}, "retrieval_setting.top_k"),
        ({"retrieval_setting": []}, "retrieval_setting"),
        ({"metadata_condition": {"conditions": {}}}, "metadata_condition.conditions"),
        ({"metadata_condition": {"logical_operator": 1}}, "metadata_condition.logical_operator"),
    ],
)
def test_a_wrong_type_is_answered_as_dify_words_errors(world, post, sent, field):
    answer = post(DIFY, {"knowledge_id": "all", "query": "rollback"} | sent, world.key("bob"))
    assert answer.status_code == 422
    assert answer.json().keys() == {"error_code", "error_msg"}
    assert answer.json()["error_code"] == 422
    assert answer.json()["error_msg"].startswith(f"{field}: ")


@pytest.mark.parametrize("name", TOOL_ARGUMENTS)
def test_a_tool_takes_null_for_an_optional_argument(name):
    required, reads = TOOL_ARGUMENTS[name], TOOLS[name].reads
    nulls = dict.fromkeys(field for field in reads.model_fields if field not in required)
    assert reads.model_validate(required | nulls) == reads.model_validate(required)


def test_a_change_keeps_what_null_was_sent_for(world, client):
    path, secret = "/api/v1/connections/runbooks", world.key("alice")
    headers = {"Authorization": f"Bearer {secret}"}
    before = client.get(path, headers=headers).json()
    sent = {"name": None, "trust": None, "half_life_days": None, "sensitivity": None, "secrets": {"password": None}}
    answer = client.patch(path, sent, content_type="application/json", headers=headers)
    assert answer.status_code == 200
    assert answer.json() == before
