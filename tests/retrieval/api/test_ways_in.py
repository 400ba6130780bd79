"""No key, header, address, query parameter, body field or tool argument widens a scope.

Every operation of every API's own description is walked: a new one fails here until it is said what it may tell whom.
"""

import functools
import io
import json
import time
import uuid
from dataclasses import dataclass

import jwt
import pytest
from asgiref.sync import async_to_sync
from django.test import Client

from corecube.access import Principal, scope_for
from corecube.keys import USER_HEADER, allow_forwarding
from corecube.models import ApiKey, Compartment, Connection, Grant
from corecube.scope import Sensitivity
from retrieval.agents.tools import TOOLS
from retrieval.models import Document, QueuedSearch, RoutingRule, SearchRecord
from tests.corecube.oauth.conftest import Agent
from tests.profiles import turn

DESCRIPTIONS = ("/api/openapi.json", "/v1/openapi.json", "/v2/openapi.json", "/api/dify/openapi.json")
QUERY = "rollback passphrase codeword march"
#: What stands in the vault and the ledger, of which Bob may see nothing, and what they are called.
HIDDEN = ("zanzibar", "tangerine", "48,200", "breach", "costs", "vault", "ledger", "finance")
ASKED = [{"role": "user", "content": QUERY}]

#: What answers with documents or tells of connections, and a request for as much of it as it gives. Words in capitals
#: stand for ids of what Bob may not see.
READS = {
    "GET /api/v1/access/check": "?document=HIDDEN",
    "POST /api/v1/search": {"query": QUERY, "top_k": 100, "explain": True},
    "POST /api/v1/searches": {"query": QUERY, "preset": "helix", "top_k": 100},
    "POST /api/v1/evidence": {
        "section": "history",
        "subject": QUERY,
        "documents": ["HIDDEN"],
        "explain": True,
        "overrides": {"cascade.first_wait_seconds": 0},
    },
    "GET /api/v1/section-sets": "",
    "POST /api/v1/context-pack": {"query": QUERY, "top_k": 100},
    "GET /api/v1/searches/{search_id}": "",
    "GET /api/v1/lifeline": f"?q={QUERY}&document=HIDDEN",
    "GET /api/v1/documents/{document_id}": "",
    "GET /api/v1/connections": "",
    "GET /api/v1/connections/{slug}": "",
    "GET /api/v1/keys": "?limit=500",
    "POST /api/v1/keys": {"name": "another"},
    "DELETE /api/v1/keys/{key_id}": None,
    "GET /api/v1/presets": "",
    "POST /api/v1/feedback": {"trace_id": "TRACE", "rating": 1, "citation": 1},
    "POST /api/v1/judgments": {"query": QUERY, "chunk_id": "HIDDEN:0", "grade": 3},
    "POST /api/v1/recall": {"query": QUERY, "budget_tokens": 32_000},
    "POST /api/v1/remember": {"text": "The rollback took a while."},
    "GET /v1/models": "",
    "GET /v1/models/{name}": "",
    "POST /v1/chat/completions": {"model": "corecube", "messages": ASKED, "corecube": {"explain": True, "top_k": 100}},
    "POST /v1/completions": {"model": "corecube", "prompt": QUERY, "corecube": {"explain": True, "top_k": 100}},
    "POST /v1/responses": {"model": "corecube", "input": QUERY, "previous_response_id": None, "store": False},
    "GET /v1/responses/{response_id}": "",
    "DELETE /v1/responses/{response_id}": None,
    "POST /v1/embeddings": {"model": "hash", "input": "rollback"},
    "POST /v1/rerank": {"query": QUERY, "documents": ["rollback"]},
    "POST /v2/rerank": {"query": QUERY, "documents": ["rollback"], "return_documents": True},
    "POST /api/dify/retrieval": {"knowledge_id": "all", "query": QUERY, "retrieval_setting": {"top_k": 100}},
}
#: What is for admins; anyone else is refused whatever they send. A body that is one where one is needed.
ADMINS = {
    "PUT /api/v1/documents": {"connection": "vault", "external_id": "1", "text": "x", "media_type": "text/plain"},
    "DELETE /api/v1/documents": "?connection=vault&external_id=1",
    "POST /api/v1/connections": {"name": "New", "kind": "upload", "compartment": "finance"},
    "POST /api/v1/connections/check": {"kind": "folder", "config": {"path": "/"}},
    "POST /api/v1/connections/{slug}/uploads": {},
    "GET /api/v1/connections/{slug}/sync": "",
    "POST /api/v1/connections/{slug}/sync": {},
    "PATCH /api/v1/connections/{slug}": {"sensitivity": "public"},
    "DELETE /api/v1/connections/{slug}": None,
    "POST /api/v1/connections/{slug}/check": {},
    "GET /api/v1/connections/{slug}/quality": "",
    "POST /api/v1/connections/{slug}/dry-run": {},
    "GET /api/v1/presets/{name}/versions": "",
    "PUT /api/v1/presets/{name}/draft": {"values": {}},
    "DELETE /api/v1/presets/{name}/draft": None,
    "POST /api/v1/presets/{name}/promote": {"number": 0},
    "POST /api/v1/presets/{name}/rollback": {},
    "GET /api/v1/presets/{name}/gate": "?number=0",
    "POST /api/v1/presets/{name}/gate": {"number": 0},
    "PUT /api/v1/section-sets/{name}": {"values": {}},
    "DELETE /api/v1/section-sets/{name}": None,
    "GET /api/v1/jobs": "",
    "GET /api/v1/jobs/{job_id}": "",
    "POST /api/v1/jobs/{job_id}/cancel": {},
    "POST /api/v1/jobs/{job_id}/retry": {},
    "GET /api/v1/indexes": "",
    "POST /api/v1/indexes": {},
    "POST /api/v1/indexes/rollback": {},
    "POST /api/v1/indexes/{number}/build": {},
    "POST /api/v1/indexes/{number}/switch": {},
    "POST /api/v1/indexes/{number}/drop": {},
    "GET /api/v1/evaluation/sets": "",
    "POST /api/v1/evaluation/sets": {"name": "Any"},
    "GET /api/v1/evaluation/sets/{question_set}": "",
    "POST /api/v1/evaluation/sets/{question_set}/import": {"files": [QUERY]},
    "POST /api/v1/evaluation/sets/{question_set}/draw": {"sample": "random"},
    "GET /api/v1/evaluation/runs": "",
    "POST /api/v1/evaluation/runs": {"question_set": "any"},
    "GET /api/v1/evaluation/runs/{run_id}": "",
    "POST /api/v1/evaluation/runs/{run_id}/cancel": {},
    "DELETE /api/v1/evaluation/runs/{run_id}": None,
    "GET /api/v1/evaluation/compare": f"?first={uuid.uuid4()}&second={uuid.uuid4()}",
    "GET /api/v1/evaluation/gates": "",
    "PUT /api/v1/evaluation/gates": {"question_set": "any"},
    "DELETE /api/v1/evaluation/gates": "?question_set=any",
    "GET /api/v1/evaluation/schedules": "?question_set=any",
    "PUT /api/v1/evaluation/schedules": {"question_set": "any"},
    "GET /api/v1/evaluation/sweeps": "",
    "POST /api/v1/evaluation/sweeps": {"question_set": "any", "ranges": [{"name": "blend.dense", "values": [0.5]}]},
    "GET /api/v1/evaluation/sweeps/{sweep_id}": "",
    "POST /api/v1/evaluation/sweeps/{sweep_id}/cancel": {},
    "POST /api/v1/evaluation/sweeps/{sweep_id}/draft": {},
    "DELETE /api/v1/evaluation/sweeps/{sweep_id}": None,
    "GET /api/v1/evaluation/experiments": "",
    "POST /api/v1/evaluation/experiments": {
        "name": "Any",
        "a": {"preset": "corecube"},
        "b": {"preset": "helix"},
        "share": 5,
        "max_questions": 9,
    },
    "GET /api/v1/evaluation/experiments/{experiment_id}": "",
    "POST /api/v1/evaluation/experiments/{experiment_id}/stop": {},
    "GET /api/v1/language-models": "",
    "POST /api/v1/language-models": {"slug": "m", "name": "M", "base_url": "http://127.0.0.1:1/v1", "model": "m"},
    "POST /api/v1/language-models/test": {"slug": "m", "name": "M", "base_url": "http://127.0.0.1:1/v1", "model": "m"},
    "GET /api/v1/language-models/{slug}": "",
    "PATCH /api/v1/language-models/{slug}": {},
    "DELETE /api/v1/language-models/{slug}": None,
    "POST /api/v1/language-models/{slug}/test": {},
    "GET /api/v1/routing": "",
    "POST /api/v1/routing": {"compartment": "finance", "language_model": None},
    "DELETE /api/v1/routing": "?compartment=finance",
    "GET /api/v1/usage": "",
}
#: An agent's tools, with what each is asked.
TOOL_ARGUMENTS = {
    "search": {"query": QUERY, "top_k": 50},
    "fetch": {"id": "HIDDEN"},
    "recall": {"query": QUERY},
    "remember": {"text": "The rollback took a while."},
    "evidence": {"subject": QUERY, "section": "history"},
}
#: Of those who ask, everyone's whole sight is Bob's: the runbooks.
CREDENTIALS = ("bob", "narrowed", "for bob", "by bob's key")
#: Headers and parameters with which some front end or framework says who asks.
UNSIGNED = (
    "X-OpenWebUI-User-Name",
    "X-OpenWebUI-User-Email",
    "X-OpenWebUI-User-Role",
    "X-Forwarded-User",
    "X-Remote-User",
    "Remote-User",
    "X-User",
    "X-Run-As",
    "X-CoreCube-Scope",
    "OpenAI-Organization",
    "Cookie",
)
PARAMETERS = (
    *(f"{name}=alice" for name in ("user", "as", "run_as", "run-as", "principal", "username", "actor", "owner")),
    *(f"{name}=vault" for name in ("scope", "include", "connection", "compartment", "slug")),
    *("admin=true", "draft=true", "explain=true", "reveal_excluded=true", "clearance=3", "max_sensitivity=3"),
)


@dataclass(frozen=True)
class Asker:
    """A way to sign in."""

    bearer: str
    sign: object = None

    @property
    def headers(self):
        return {"Authorization": f"Bearer {self.bearer}", **({USER_HEADER: self.sign()} if self.sign else {})}


def forwarding(owner, name, admin):
    key, bearer = ApiKey.issue(user=owner, name="front end")
    secret = allow_forwarding(key, actor=admin)

    def sign():
        now = int(time.time())
        claims = {"sub": name, "aud": "corecube", "iat": now, "exp": now + 60}
        return jwt.encode(claims, secret, algorithm="HS256")

    return Asker(bearer, sign)


@pytest.fixture
def asker(world):
    """Return a function that gives a credential by its name."""

    def named(name):
        if name in {"bob", "alice"}:
            return Asker(world.key(name))
        if name == "for bob":
            return forwarding(world.alice, "bob", world.alice)
        if name == "by bob's key":
            return forwarding(world.bob, "alice", world.alice)
        if name == "bob by oauth":
            agent = Agent(Client())
            agent.register()
            return Asker(agent.tokens(world.bob)["access_token"])
        key, bearer = ApiKey.issue(user=world.alice, name="narrow")
        key.compartments.add(Compartment.objects.get(slug="engineering"))
        ApiKey.objects.filter(pk=key.pk).update(max_sensitivity=Sensitivity.INTERNAL)
        return Asker(bearer)

    return named


@pytest.fixture
def secrets_of(world, post):
    """The ids that Bob may not know of: a document, Alice's trace, a job, a key. A rule speaks of finance too."""
    RoutingRule.objects.create(compartment=Compartment.objects.get(slug="finance"))
    trace = post("/api/v1/search", {"query": QUERY}, world.key("alice")).json()["trace_id"]
    answer = post("/v1/responses", {"model": "corecube", "input": QUERY}, world.key("alice")).json()
    queued = QueuedSearch.objects.create(user=world.alice, status=QueuedSearch.Status.DONE, record_id=trace)
    return {
        "HIDDEN": str(Document.objects.get(connection=world.vault).pk),
        "TRACE": trace,
        "SEARCH": str(queued.pk),
        "ANSWER": answer["id"],
        "JOB": str(world.vault.syncs.first().pk),
        "KEY": str(ApiKey.objects.filter(user=world.alice).first().pk),
    }


@pytest.fixture
def send(client, secrets_of):
    """Return a function that sends an operation's request, with more parameters, headers or another body."""

    def filled(text):
        for word, value in secrets_of.items():
            text = text.replace(word, value)
        return text

    def send_one(operation, asker, *, parameter="", body=None, **headers):
        method, path = operation.split(" ")
        known = {"slug": "vault", "name": "corecube", "number": "1", "document_id": "HIDDEN"}
        path = filled(
            path.format(
                **known,
                job_id="JOB",
                question_set="none",
                run_id="JOB",
                sweep_id="JOB",
                experiment_id="JOB",
                key_id="KEY",
                search_id="SEARCH",
                response_id="ANSWER",
            )
        )
        wanted = READS.get(operation, ADMINS.get(operation)) if body is None else body
        if isinstance(wanted, str):
            path, wanted = path + filled(wanted), None
        if parameter:
            path += ("&" if "?" in path else "?") + filled(parameter)
        if path.endswith("/uploads"):
            return client.post(path, {"files": io.BytesIO(b"x")}, headers=asker.headers)
        content = None if wanted is None else filled(json.dumps(wanted))
        sent = {**asker.headers, **headers}
        return client.generic(method, path, content or "", content_type="application/json", headers=sent)

    return send_one


def told_by(response):
    if not response.streaming:
        return response.content.decode()

    async def read():
        return b"".join([part async for part in response.streaming_content])

    return async_to_sync(read)().decode()


def assert_nothing_hidden(response, sent=""):
    """Find nothing hidden in an answer; a word that was sent may come back, as an item's own project does."""
    told = (told_by(response) + str(dict(response.headers))).lower()
    ids = [str(it.pk) for it in Document.objects.filter(connection__slug__in=["vault", "ledger"])]
    assert [word for word in (*HIDDEN, *ids) if word in told and word not in sent] == [], told[:1000]


@functools.cache
def operations():
    """Return the operations of every API's description, which is the same for everybody."""
    client, found = Client(), {}
    for address in DESCRIPTIONS:
        description = client.get(address).json()
        for path, methods in description["paths"].items():
            for method, operation in methods.items():
                found[f"{method.upper()} {path}"] = (operation, description)
    return found


def test_every_operation_is_listed_here(db):
    assert set(operations()) == READS.keys() | ADMINS.keys()
    assert not READS.keys() & ADMINS.keys()
    assert TOOLS.keys() == TOOL_ARGUMENTS.keys()


def test_every_api_is_walked():
    from corecube.oauth.urls import urlpatterns as oauth
    from corecube.urls import urlpatterns
    from retrieval.urls import urlpatterns as engine

    assert {str(it.pattern) for it in engine if str(it.pattern) not in {"healthz", "readyz", "metrics"}} == {
        "api/",
        "v1/",
        "v2/",
        "api/dify/",
        "mcp",
    }
    assert not [it for it in urlpatterns if str(it.pattern).startswith(("api", "v1", "v2", "mcp"))]
    # tests/corecube/oauth walks these: none tells of documents.
    assert {str(it.pattern) for it in oauth} == {
        ".well-known/oauth-protected-resource",
        ".well-known/oauth-protected-resource/mcp",
        ".well-known/oauth-authorization-server",
        *(f"oauth/{name}" for name in ("register", "authorize", "token", "revoke")),
    }


@pytest.mark.parametrize(
    "operation",
    [
        "POST /api/v1/search",
        "POST /api/v1/context-pack",
        "POST /v1/chat/completions",
        "POST /v1/completions",
        "POST /v1/responses",
        "GET /v1/responses/{response_id}",
        "POST /api/v1/recall",
        "POST /api/dify/retrieval",
        "GET /api/v1/documents/{document_id}",
        "GET /api/v1/connections",
        "GET /api/v1/lifeline",
    ],
)
def test_the_requests_would_find_what_is_hidden(operation, send, asker):
    with pytest.raises(AssertionError):
        assert_nothing_hidden(send(operation, asker("alice")))


@pytest.mark.parametrize("credential", CREDENTIALS)
def test_no_read_tells_of_what_is_hidden(credential, send, asker):
    who = asker(credential)
    for operation in READS:
        assert_nothing_hidden(send(operation, who))


@pytest.mark.parametrize("credential", CREDENTIALS)
def test_nothing_for_admins_tells_or_changes_anything(credential, world, send, asker):
    who = asker(credential)
    before = state_of_the_world()
    for operation in ADMINS:
        response = send(operation, who)
        assert_nothing_hidden(response)
        # A narrowed key of an admin still manages what is neither in nor out of its scope, such as the language models.
        assert credential == "narrowed" or response.status_code in {403, 404}, (operation, response.content)
    assert state_of_the_world() == before


def state_of_the_world():
    return (
        list(Connection.objects.order_by("pk").values("slug", "compartment", "sensitivity", "enabled", "config")),
        list(Grant.objects.order_by("pk").values()),
        Document.objects.count(),
    )


@pytest.mark.parametrize("credential", CREDENTIALS)
def test_no_header_that_is_not_signed_changes_who_asks(credential, send, asker):
    who = asker(credential)
    for operation in READS:
        assert_nothing_hidden(send(operation, who, **dict.fromkeys(UNSIGNED, "alice")))


@pytest.mark.parametrize("credential", CREDENTIALS)
def test_no_query_parameter_widens_a_scope(credential, send, asker, secrets_of):
    who = asker(credential)
    for operation, (described, _) in operations().items():
        if operation not in READS or operation.startswith("DELETE"):
            continue
        taken = {it["name"] for it in described.get("parameters", ()) if it["in"] == "query"}
        others = [it for it in PARAMETERS if it.partition("=")[0] not in taken]
        assert_nothing_hidden(send(operation, who, parameter="&".join(others)))
        # What an operation does take is sent by itself, so that no other one's refusal hides what it does.
        for name in taken:
            for value in ("alice", "vault", "HIDDEN", "true", "3"):
                response = send(operation, who, parameter=f"{name}={value}")
                assert_nothing_hidden(response, sent=secrets_of.get(value, value))


def properties(schema, description, path=()):
    """Yield the path of every field of a body, into objects and lists of them."""
    if "$ref" in schema:
        schema = description["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for branch in (
        *schema.get("anyOf", ()),
        *schema.get("allOf", ()),
        *([schema["items"]] if "items" in schema else ()),
    ):
        yield from properties(branch, description, path)
    for name, inner in schema.get("properties", {}).items():
        yield (*path, name)
        yield from properties(inner, description, (*path, name))


def with_field(body, path, value):
    """Return a body with one more field, inside of what stands there where that is an object."""
    name, *rest = path
    inner = body.get(name) if isinstance(body.get(name), dict) else {}
    return {**body, name: with_field(inner, rest, value) if rest else value}


HOSTILE = ("vault", ["vault"], "alice", "HIDDEN", "HIDDEN:0", {"include": ["vault", "ledger"]}, True, 3, "restricted")


@pytest.mark.parametrize("operation", [name for name, wanted in READS.items() if isinstance(wanted, dict)])
def test_no_field_of_a_body_widens_a_scope(operation, send, asker, secrets_of):
    described, description = operations()[operation]
    schema = next(iter(described["requestBody"]["content"].values()))["schema"]
    fields = sorted({*properties(schema, description), ("user",), ("run_as",), ("scope", "principal"), ("admin",)})
    assert len(fields) > 4
    who = asker("bob")
    for number, field in enumerate(fields):
        for value in turn(HOSTILE, number, of=len(HOSTILE)):
            body = with_field(READS[operation], field, value)
            response = send(operation, who, body=body)
            assert response.status_code < 500, (field, value)
            assert_nothing_hidden(response, sent=str(value).replace("HIDDEN", secrets_of["HIDDEN"]))


@pytest.mark.parametrize("credential", CREDENTIALS)
def test_no_key_that_a_request_issues_sees_more_than_who_issued_it(credential, send, asker):
    who = asker(credential)
    for more in ({}, {"user": "alice"}, {"max_sensitivity": "restricted"}, {"compartments": ["engineering"]}):
        response = send("POST /api/v1/keys", who, body={"name": "another", **more})
        if response.status_code == 201:
            key = ApiKey.objects.for_secret(response.json()["secret"])
            assert [it.connection.slug for it in scope_for(Principal(key.user, key)).included] == ["runbooks"]
            assert not key.may_forward_users
    assert credential == "bob" or not ApiKey.objects.filter(name="another").exists()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("credential", [*CREDENTIALS, "bob by oauth"])
@pytest.mark.parametrize("tool", TOOL_ARGUMENTS)
def test_no_argument_of_a_tool_widens_a_scope(credential, tool, client, asker, secrets_of):
    who = asker(credential)
    extra = ({}, {"user": "alice"}, {"scope": {"include": ["vault"]}}, {"principal": "alice"}, {"project": "vault"})
    for more in (
        *extra,
        {"preset": "corecube", "include": ["vault"]},
        {"id": secrets_of["HIDDEN"]},
        {"_meta": "alice"},
    ):
        arguments = json.loads(json.dumps({**TOOL_ARGUMENTS[tool], **more}).replace("HIDDEN", secrets_of["HIDDEN"]))
        call = {"name": tool, "arguments": arguments, "_meta": {"user": "alice"}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        headers = {**who.headers, "Accept": "application/json, text/event-stream", "X-Run-As": "alice"}
        response = client.post("/mcp", message, content_type="application/json", headers=headers)
        told = response.content.decode()
        # An id that was asked for, or a project that an item was given, may come back with it.
        for sent in (secrets_of["HIDDEN"], '\\"project\\": \\"vault\\"', '"project":"vault"'):
            told = told.replace(sent, "")
        assert [word for word in HIDDEN if word in told.lower()] == []


@pytest.mark.parametrize("credential", CREDENTIALS)
def test_every_search_that_was_made_kept_to_the_runbooks(credential, world, send, asker):
    who = asker(credential)
    SearchRecord.objects.all().delete()
    for operation in READS:
        send(operation, who)
    found = SearchRecord.objects.all()
    assert found.count() >= 4
    assert {it for record in found for it in record.connection_ids} <= {world.runbooks.pk, *memories()}
    expected = {"narrowed": "alice", "by bob's key": "alice"}.get(credential, "bob")
    assert {record.user.username for record in found} == {expected}


def memories():
    return Connection.objects.filter(slug__startswith="memory-").values_list("pk", flat=True)
