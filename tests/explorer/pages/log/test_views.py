import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from corecube.access import Principal, ScopeRequest
from corecube.models import ApiKey, Connection
from retrieval.engine.metadata_conditions import Condition, Conditions
from retrieval.engine.state import RequestFilter
from retrieval.engine.types import MemoryType
from retrieval.ingest.sync import sync_connection
from retrieval.models import Document, PresetVersion, ReadModel, SearchRecord
from retrieval.search.request import SearchRequest
from retrieval.search.service import search


@pytest.fixture
def logged(world):
    """Return a function that makes a search as one of the cast and returns its record."""

    def make(name, text="how to roll back", *, actor=None, key=None, changes=None, **request):
        principal = Principal(getattr(world, name), key, actor=actor)
        outcome = search(SearchRequest(text=text, **request), principal=principal)
        SearchRecord.objects.filter(pk=outcome.id).update(**(changes or {}))
        return SearchRecord.objects.get(pk=outcome.id)

    return make


def page(response):
    return response.content.decode()


def shown(response):
    return [row["record"].pk for row in response.context["page"]["rows"]]


def counts(response):
    return {flag["name"]: str(flag["count"]) for flag in response.context["flags"]}


def test_an_admin_sees_every_search_and_who_made_it(browse, logged, world):
    key, _ = ApiKey.issue(user=world.bob, name="bot")
    mine, theirs = logged("alice"), logged("bob", "draining the queue", key=key, surface="api")
    as_bob = logged("bob", "seen through his eyes", actor=world.alice)
    response = browse("alice").get("/log/")
    assert shown(response) == [as_bob.pk, theirs.pk, mine.pk]
    assert "draining the queue" in page(response)
    assert key.prefix in page(response)
    rows = {row["record"].pk: row for row in response.context["page"]["rows"]}
    assert (rows[as_bob.pk]["record"].actor.username, rows[as_bob.pk]["record"].user.username) == ("alice", "bob")
    assert rows[theirs.pk]["surface"] == "API"


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?user=alice",
        "?q=secret",
        "?flag=refused",
        "?flag=slow&ms=0",
        "?since=day",
        "?before=9999-01-01T00:00Z~" + "0" * 32,
    ],
)
def test_a_user_sees_their_own_searches_alone(browse, logged, world, query):
    changes = {"is_refused": True}
    logged("alice", "secret plans of alice", changes=changes)
    logged("bob", "secret look of the admin", actor=world.alice, changes=changes)
    own = logged("bob", "secret of my own", changes=changes)
    response = browse("bob").get(f"/log/{query}")
    assert set(shown(response)) <= {own.pk}
    assert all(count in {"0", "1"} for count in counts(response).values())
    assert "plans of alice" not in page(response)
    assert "look of the admin" not in page(response)
    assert "alice" not in page(response).replace("user=alice", "")


def test_nobody_signed_in_sees_none(client, db):
    assert client.get("/log/").status_code == 302


def test_filters_hold_together_and_are_counted(browse, logged):
    slow = {"milliseconds": 800.0}
    logged("alice", changes={"is_refused": True, **slow})
    both = logged("alice", changes={"is_refused": True, "feedback": -1, **slow})
    logged("alice", changes={"degraded": ["rerank_failed"], "hit_count": 0, "verdict": "partial"})
    logged("alice", changes={"verdict": "answerable", "feedback": 1})
    SearchRecord.objects.exclude(hit_count=0).update(verdict="answerable")
    client = browse("alice")
    assert counts(client.get("/log/")) == {
        "refused": "2", "unsure": "1", "disliked": "1", "degraded": "1", "empty": "1", "slow": "2",
    }  # fmt: skip
    assert counts(client.get("/log/?ms=900"))["slow"] == "0"
    together = client.get("/log/?flag=refused&flag=disliked&flag=slow")
    assert shown(together) == [both.pk]
    assert counts(together)["unsure"] == "0"
    assert "reranker failed" in page(client.get("/log/?flag=degraded"))
    assert shown(client.get("/log/?flag=empty&flag=refused")) == []


def test_the_text_the_person_the_surface_and_the_time_are_filters(browse, logged):
    old = logged("bob", "Draining The Queue", surface="chat", changes={"at": timezone.now() - timedelta(days=2)})
    new = logged("alice", "rollback")
    client = browse("alice")
    for query in ("q=the+que", "user=bob", "surface=chat"):
        assert shown(client.get(f"/log/?{query}")) == [old.pk]
    assert shown(client.get("/log/?since=day")) == [new.pk]
    for query in ("q=100%25", "q=the_que"):
        assert shown(client.get(f"/log/?{query}")) == []
    nothing = client.get("/log/?user=nobody")
    assert (shown(nothing), str(nothing.context["total"])) == ([], "0")
    assert "No matching searches" in page(nothing)


@pytest.mark.parametrize("query", ["", "q=roll"])
def test_pages_follow_each_other_without_a_gap(browse, logged, monkeypatch, query):
    monkeypatch.setattr("explorer.pages.log.panels.PAGE_SIZE", 2)
    made = [logged("alice").pk for _ in range(5)]
    at = timezone.now()
    SearchRecord.objects.update(at=at)
    order = sorted(made, reverse=True)
    client = browse("alice")
    first = client.get("/log/", {"q": "roll"} if query else {})
    older = {"before": first.context["page"]["older"], **({"q": "roll"} if query else {})}
    second = client.get("/log/", older)
    third = client.get("/log/", {**older, "before": second.context["page"]["older"]})
    assert [shown(it) for it in (first, second, third)] == [order[:2], order[2:4], order[4:]]
    assert (first.context["page"]["newer"], third.context["page"]["older"]) == ("", "")
    back = client.get("/log/", {"after": third.context["page"]["newer"], **({"q": "roll"} if query else {})})
    assert shown(back) == order[2:4]
    assert shown(client.get("/log/", {"after": back.context["page"]["newer"]})) == order[:2]


def test_more_than_are_counted_are_told_as_more(browse, logged, monkeypatch):
    monkeypatch.setattr("explorer.pages.log.panels.MAX_COUNTED", 2)
    for _ in range(3):
        logged("alice", changes={"is_refused": True})
    for query in ("", "?q=roll"):
        response = browse("alice").get(f"/log/{query}")
        assert (str(response.context["total"]), counts(response)["refused"]) == ("2+", "2+")


def test_htmx_gets_the_list_alone_and_the_page_is_the_same(browse, logged, htmx):
    logged("alice")
    whole, part = browse("alice").get("/log/"), browse("alice").get("/log/", headers=htmx)
    assert "<html" not in page(part)
    assert 'id="announcement"' in page(part)
    assert "log-table" in page(whole)
    assert "log-table" in page(part)


def test_a_text_that_was_not_kept_says_so(browse, logged, settings):
    settings.CORECUBE_KEEP_QUERY_TEXT = False
    record = logged("alice")
    assert "text not stored" in page(browse("alice").get("/log/"))
    opened = browse("alice").get(f"/log/{record.pk}/")
    assert "not stored" in page(opened)
    assert opened.context["replay"].address == ""
    assert opened.context["compare"] == ""


def test_a_page_costs_a_fixed_number_of_statements(browse, logged, django_assert_num_queries):
    client = browse("alice")
    for _ in range(3):
        logged("alice")
    client.get("/log/")
    with django_assert_num_queries(12):
        client.get("/log/")


# One record.


def test_a_record_shows_what_was_asked_and_found(browse, logged):
    record = logged("alice", top_k=5)
    response = browse("alice").get(f"/log/{record.pk}/")
    panels = response.context["panels"]
    stored = [hit["chunk"] for hit in record.trace["hits"]]
    assert [str(hit["chunk_id"]) for hit in panels["hits"]] == stored
    assert [hit["score"] for hit in panels["hits"]] == [hit["score"] for hit in record.trace["hits"]]
    assert [row["span"].stage for row in panels["trace"] if not row["span"].parent] == [
        span["stage"] for span in record.trace["spans"] if not span["parent"]
    ]
    assert panels["funnel"]["cells"]
    assert "Rolling back" in page(response)
    assert panels["presences"] == {"same": len(stored), "changed": 0, "gone": 0, "hidden": 0}


@pytest.mark.parametrize("name", ["bob", "charlie"])
def test_anothers_record_does_not_exist(browse, logged, world, name):
    for record in (logged("alice"), logged("bob", actor=world.alice)):
        assert browse(name).get(f"/log/{record.pk}/").status_code == 404
    assert browse(name).get(f"/log/{uuid.uuid4()}/").status_code == 404


def test_an_admin_sees_no_title_outside_their_own_scope(browse, logged, world, htmx):
    record = logged("alice", "what was stolen")
    assert "Breach of March" in page(browse("alice").get(f"/log/{record.pk}/"))
    bob = world.bob
    bob.is_staff = True
    bob.save()
    response = browse("bob").get(f"/log/{record.pk}/")
    assert response.status_code == 200
    stored = record.trace["hits"]
    assert response.context["panels"]["hidden"] == len(stored) - len(response.context["panels"]["hits"]) > 0
    stages = [cell["span"].stage for cell in response.context["panels"]["funnel"]["cells"]]
    drawn = [
        page(browse("bob").get(f"/log/{record.pk}/", headers={**htmx, "HX-Target": f"stage-{it}"})) for it in stages
    ]
    assert all('class="stage-drops"' in it and "<html" not in it for it in drawn)
    text = "".join((page(response), *drawn))
    for secret in ("Breach of March", "Costs", "Vault", "Ledger", "zanzibar", "passphrase"):
        assert secret not in text
    visible = {str(hit["chunk_id"].document_id) for hit in response.context["panels"]["hits"]}
    for document in (hit["chunk"].split(":")[0] for hit in stored):
        assert (document in text) == (document in visible)


def test_what_left_a_users_scope_is_only_counted(browse, logged, world):
    record = logged("bob")
    assert browse("bob").get(f"/log/{record.pk}/").context["panels"]["hidden"] == 0
    Connection.objects.filter(pk=world.runbooks.pk).update(sensitivity=3)
    closed = browse("bob").get(f"/log/{record.pk}/")
    assert (closed.context["panels"]["hits"], closed.context["panels"]["hidden"]) == ((), record.hit_count)
    assert "Rolling back" not in page(closed)
    Connection.objects.filter(pk=world.runbooks.pk).update(sensitivity=1)
    world.runbooks.delete()
    gone = browse("bob").get(f"/log/{record.pk}/")
    assert gone.context["panels"]["presences"] == closed.context["panels"]["presences"]


def test_an_admin_is_told_what_is_gone_and_what_changed(transactional_db, browse, logged, world, settings):
    settings.CORECUBE_DELETE_GUARD_PERCENT = 100
    record = logged("alice", "error Q-4711 rollback")
    before = len(record.trace["hits"])
    (world.root / "runbooks" / "queues.txt").unlink()
    path = world.root / "runbooks" / "rollback.md"
    path.write_text(path.read_text().replace("captain", "skipper"))
    sync_connection(world.runbooks)
    response = browse("alice").get(f"/log/{record.pk}/")
    presences = response.context["panels"]["presences"]
    assert (presences["gone"], presences["changed"], sum(presences.values())) == (1, 1, before)
    assert "deleted" in page(response)
    assert "text changed" in page(response)
    now = {row.label: row.now for row in response.context["since"]["differences"]}
    assert now["Documents added or changed"] == "1 document, in the connections that you can see"
    assert now["Documents deleted"] == "1 document, in the connections that you can see"


def test_changes_that_are_forgotten_are_not_taken_for_none(browse, logged, world):
    record = logged("alice")
    ReadModel.objects.create(name="outbox", transaction_id=record.transaction_id + 1, at=timezone.now())
    rows = browse("alice").get(f"/log/{record.pk}/").context["since"]["differences"]
    assert [row.now for row in rows if row.label.startswith("Documents")] == ["unknown"]


def test_documents_are_counted_within_the_viewers_scope_alone(transactional_db, browse, logged, world):
    record = logged("bob")
    (world.root / "vault" / "new.md").write_text("# New\n\nA new secret of the vault.\n")
    sync_connection(world.vault)
    response = browse("bob").get(f"/log/{record.pk}/")
    now = {row.label: row for row in response.context["since"]["differences"]}
    assert now["Documents added or changed"].is_same
    of_alice = browse("alice").get(f"/log/{record.pk}/").context["since"]["differences"]
    assert [row.now for row in of_alice if not row.is_same] == ["1 document, in the connections that you can see"]


def test_what_differs_since_is_said_without_searching(browse, logged, world):
    record = logged("alice")
    same = browse("alice").get(f"/log/{record.pk}/").context["since"]
    assert all(row.is_same for row in same["differences"])
    PresetVersion.objects.create(
        preset="corecube", number=4, status="live", values={"blend.dense": 0.5}, created_by=world.alice
    )
    differs = browse("alice").get(f"/log/{record.pk}/").context["since"]
    labels = [row.label for row in differs["differences"] if not row.is_same]
    assert labels == ["Preset General search", "Settings"]
    assert [(row.name, row.after) for row in differs["changes"]] == [("blend.dense", "0.5")]
    assert SearchRecord.objects.count() == 1


def test_a_record_is_asked_again_with_its_preset_scope_and_person(browse, logged, world):
    key, _ = ApiKey.issue(user=world.alice, name="narrow")
    key.compartments.add(world.ledger.compartment)
    narrowed = logged("alice", key=key, mode="dense")
    address = browse("alice").get(f"/log/{narrowed.pk}/").context["replay"].address
    assert address == "/explorer/?q=how+to+roll+back&preset=corecube&mode=dense&without=runbooks&without=vault"
    asked = logged("bob", narrowing=ScopeRequest(include=("runbooks",)), top_k=3, overrides={"blend.dense": 0.5})
    response = browse("alice").get(f"/log/{asked.pk}/")
    assert response.context["replay"].address == "/explorer/?q=how+to+roll+back&preset=corecube&as=bob"
    assert response.context["replay"].leaves_out == (
        "It ignores settings that the request overrode: blend.dense.",
        "The Explorer shows 10 hits; this search returned up to 3.",
    )
    again = browse("alice").get(response.context["replay"].address)
    assert again.status_code == 200
    assert f"/compare/?a=log:{asked.pk}" in page(response)


def titles(response):
    return {"".join(part.text for part in hit["title"]) for hit in response.context["panels"]["hits"]}


_BY_ANN = Conditions((Condition(("author",), "is", "Ann"),))


def test_conditions_are_put_again_and_can_be_dropped(browse, logged, world):
    Document.objects.filter(title="Rolling back").update(metadata={"author": "Ann"})
    record = logged("alice", conditions=_BY_ANN)
    response = browse("alice").get(f"/log/{record.pk}/")
    assert response.context["replay"].leaves_out == ()
    again = browse("alice").get(response.context["replay"].address)
    assert titles(again) == {"Rolling back"}
    assert again.context["filter_words"] == ("author is Ann",)
    assert SearchRecord.objects.latest("at").trace["filter"] == record.trace["filter"]
    whole = browse("alice").get("/", {"q": record.query, "filter": ""})
    assert titles(whole) > {"Rolling back"}


def test_a_time_and_a_type_are_put_again(browse, logged, world):
    later = timezone.now() + timedelta(days=1)
    kept = RequestFilter(since=later, memory_types=frozenset({MemoryType.DECISION}))
    record = logged("bob", filter=kept)
    assert record.hit_count == 0
    again = browse("alice").get(browse("alice").get(f"/log/{record.pk}/").context["replay"].address)
    assert again.context["panels"]["hits"] == ()
    assert again.context["filter_words"][0] == "memory type decision"
    assert "Clear filter" in page(again)


def test_conditions_that_were_not_kept_are_named(browse, logged):
    record = logged("alice", conditions=_BY_ANN)
    del record.trace["filter"]
    record.save()
    left_out = browse("alice").get(f"/log/{record.pk}/").context["replay"].leaves_out
    assert left_out == ("It ignores its document filters.",)


@pytest.mark.parametrize("text", ["{", "[]", '{"since": "soon"}', '{"memory_types": ["dream"]}', "1" * 5000])
def test_a_filter_that_is_none_is_refused_in_plain_words(browse, world, text):
    response = browse("alice").get("/", {"q": "rollback", "filter": text})
    assert response.status_code == 422
    assert "filter in the address" in page(response)


def test_a_user_who_is_no_admin_asks_again_as_themself(browse, logged):
    record = logged("bob", narrowing=ScopeRequest(exclude=("runbooks",)))
    address = browse("bob").get(f"/log/{record.pk}/").context["replay"].address
    assert address == "/explorer/?q=how+to+roll+back&preset=corecube&without=runbooks"
    assert "Save as case" not in page(browse("bob").get(f"/log/{record.pk}/"))


def test_a_search_whose_person_is_gone_is_not_asked_again(browse, logged, world):
    record = logged("bob")
    world.bob.delete()
    response = browse("alice").get(f"/log/{record.pk}/")
    assert response.status_code == 200
    assert "account" in response.context["replay"].obstacle


def test_a_record_of_an_earlier_release_still_opens(browse, world):
    old = SearchRecord.objects.create(
        user=world.alice,
        preset="no-such-preset",
        preset_version="1",
        query="q",
        milliseconds=3.0,
        hit_count=0,
        trace={},
    )
    response = browse("alice").get(f"/log/{old.pk}/")
    assert response.status_code == 200
    assert "preset no longer exists" in page(response)


def test_settings_under_former_names_are_shown_and_compared(browse, logged):
    record = logged("alice", overrides={"quality.minimum": 0.1})
    former = {"quality.least": 0.1}
    SearchRecord.objects.filter(pk=record.pk).update(trace=record.trace | {"overrides": former, "values": former})
    response = browse("alice").get(f"/log/{record.pk}/")
    settings = [item for cell in response.context["panels"]["funnel"]["cells"] for item in cell["settings"]]
    assert [value for key, value, _ in settings if key == "quality.minimum"] == [0.1]
    assert all(row.is_same for row in response.context["since"]["differences"])
    assert "It ignores settings that the request overrode: quality.minimum." in response.context["replay"].leaves_out


# Looking for a text.


def test_a_text_is_looked_for_a_stretch_at_a_time_and_none_is_lost(browse, logged, monkeypatch):
    monkeypatch.setattr("explorer.pages.log.panels.MAX_READ", 2)
    made = [logged("alice", text) for text in ("zanzibar", "rollback", "staging", "zanzibar", "rollback")]
    client = browse("alice")
    first = client.get("/log/?q=zanzibar")
    assert (shown(first), str(first.context["total"])) == ([made[3].pk], "1+")
    assert "Checked 2 searches for this text" in page(first)
    second = client.get("/log/", {"q": "zanzibar", "before": first.context["page"]["older"]})
    assert (shown(second), second.context["page"]["read"]) == ([], 2)
    assert "No matching searches so far" in page(second)
    last = client.get("/log/", {"q": "zanzibar", "before": second.context["page"]["older"]})
    assert (shown(last), last.context["page"]["older"], last.context["page"]["read"]) == ([made[0].pk], "", 0)
    back = client.get("/log/", {"q": "zanzibar", "after": last.context["page"]["newer"]})
    assert (shown(back), back.context["page"]["read"]) == ([], 2)
    again = client.get("/log/", {"q": "zanzibar", "after": back.context["page"]["newer"]})
    assert (shown(again), again.context["page"]["newer"]) == ([made[3].pk], "")


def test_what_was_looked_through_whole_is_told_as_whole(browse, logged, monkeypatch):
    monkeypatch.setattr("explorer.pages.log.panels.MAX_READ", 2)
    both = [logged("alice", "rollback").pk for _ in range(2)]
    answer = browse("alice").get("/log/?q=roll")
    assert (shown(answer), str(answer.context["total"]), answer.context["page"]["read"]) == (both[::-1], "2", 0)


def test_a_record_shows_the_verdict_that_the_explorer_showed(browse, logged):
    alice, record = browse("alice"), logged("alice")
    stored = alice.get(f"/log/{record.pk}/", {"part": "verdict"})
    live = alice.get("/explorer/", {"q": record.query}).context["panels"]["answerability"]
    found = stored.context["panels"]["answerability"]
    shown = ("verdict", "tone", "confidence", "reason", "partial_from", "answerable_from")
    assert {name: found[name] for name in shown} == {name: live[name] for name in shown}
    assert (found["rows"], found["start"], found["sum"]) == (live["rows"], live["start"], live["sum"])
    assert '<span class="strip-label">Verdict</span>' in page(stored)
    for name in ("intercept", "contributions"):  # Of an earlier release.
        del record.trace["answerability"][name]
    record.save()
    older = alice.get(f"/log/{record.pk}/")
    assert older.context["panels"]["answerability"]["sum"] == ""
    assert "not used" not in page(older)


def test_an_explorer_search_repeated_within_a_minute_is_one_row_from_which_each_can_be_opened(browse, logged):
    repeated = [logged("bob", surface="explorer") for _ in range(3)]
    now = timezone.now()
    for at, record in enumerate(repeated):
        SearchRecord.objects.filter(pk=record.pk).update(at=now - timedelta(seconds=150 - 50 * at))
    others = [logged("bob", surface="explorer", mode="dense"), logged("alice", surface="explorer"), logged("bob")]
    response = browse("alice").get("/log/")
    assert shown(response) == [*(it.pk for it in reversed(others)), repeated[-1].pk]
    assert [it["record"].pk for it in response.context["page"]["rows"][-1]["repeats"]] == [
        repeated[1].pk,
        repeated[0].pk,
    ]
    assert page(response).count(f"/log/{repeated[0].pk}/") == 1
    SearchRecord.objects.filter(pk=repeated[1].pk).update(at=now - timedelta(seconds=90))
    SearchRecord.objects.filter(pk=repeated[0].pk).update(at=now - timedelta(seconds=151))
    assert repeated[0].pk in shown(browse("alice").get("/log/"))
