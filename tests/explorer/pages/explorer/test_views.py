"""The Query Explorer's page."""

import re
from html import unescape

import pytest

from corecube.models import AuditEvent
from retrieval.errors import ModelMissingError, StageError
from retrieval.models import Chunk, SearchRecord
from retrieval.search import runtime

#: Words that only connections outside Bob's scope hold: their names, compartment, titles and texts.
HIDDEN = (
    "Vault",
    "vault",
    "Ledger",
    "inance",
    "zanzibar",
    "tangerine",
    "Breach",
    "restricted",
    "no clearance",
    "clearance conf",
)


def templates(response):
    return [template.name for template in response.templates]


def page(response):
    return response.content.decode()


def test_the_first_visit_shows_the_scope_and_searches_nothing(browse):
    response = browse("bob").get("/explorer/")
    assert response.status_code == 200
    assert "explorer/explorer/search.html" in templates(response)
    assert "Runbooks" in page(response)
    assert not SearchRecord.objects.exists()


def test_a_query_shows_every_panel_of_one_search(browse):
    response = browse("bob").get("/", {"q": "how do we roll back staging?"})
    assert response.status_code == 200
    for name in ("hits", "context"):
        assert f'data-panel="tab" data-name="{name}"' in page(response)
    assert 'id="ledger-1"' in page(response)
    # The large ones come when their tab is opened, of the same search.
    for name in ("scores", "trace", "scope"):
        assert f'data-panel="tab" data-name="{name}"' not in page(response)
        header = {"HX-Request": "true", "CoreCube-Trace": str(response.context["panels"]["trace_id"])}
        opened = browse("bob").get("/", {"q": "how do we roll back staging?", "tab": name}, headers=header)
        assert f'data-panel="tab" data-name="{name}"' in page(opened)
    assert SearchRecord.objects.count() == 1


def test_a_stage_is_drawn_when_it_is_opened_of_the_same_search(browse, htmx):
    whole = browse("bob").get("/", {"q": "rollback"})
    headers = {**htmx, "CoreCube-Trace": str(whole.context["panels"]["trace_id"])}
    assert "stage-drops" not in page(whole)
    opened = browse("bob").get("/", {"q": "rollback", "stage": "fuse"}, headers={**headers, "HX-Target": "stage-fuse"})
    assert "fusion.rank_constant" in page(opened)
    assert "stage-drops" in page(opened)
    assert "announcement" not in page(opened)
    assert SearchRecord.objects.count() == 1
    # Without scripts, the link loads the page with the stage open.
    assert "stage-drops" in page(browse("bob").get("/", {"q": "rollback", "stage": "fuse"}))


def test_a_part_of_the_strip_is_drawn_when_it_is_opened(browse, htmx):
    whole = browse("bob").get("/", {"q": "rollback"})
    assert "funnel-cell" not in page(whole)
    headers = {**htmx, "CoreCube-Trace": str(whole.context["panels"]["trace_id"]), "HX-Target": "part-fuse"}
    of_log = f"/log/{whole.context['panels']['trace_id']}/"
    for address, asked in (("/", {"q": "rollback", "part": "fuse"}), (of_log, {"part": "fuse"})):
        opened = page(browse("bob").get(address, asked, headers=headers))
        (part,) = (it for it in whole.context["panels"]["funnel"]["parts"] if it["name"] == "fuse")
        assert re.findall(r'data-switch="stage" data-name="(\w+)"', opened) == [
            it["span"].stage for it in part["cells"]
        ]
        assert "<html" not in opened
    assert "funnel-cell" in page(browse("bob").get("/", {"q": "rollback", "part": "fuse"}))


def test_the_context_is_drawn_when_it_is_opened(browse, htmx):
    whole = browse("bob").get("/", {"q": "rollback"})
    assert "passage-text" not in page(whole)
    headers = {**htmx, "CoreCube-Trace": str(whole.context["panels"]["trace_id"]), "HX-Target": "context"}
    opened = page(browse("bob").get("/", {"q": "rollback", "tab": "context"}, headers=headers))
    assert opened.count("passage-text") == len(whole.context["panels"]["context"]["passages"])
    assert "<html" not in opened
    assert SearchRecord.objects.count() == 1
    assert "passage-text" in page(browse("bob").get("/", {"q": "rollback", "tab": "context"}))


def test_the_verdict_is_drawn_when_it_is_opened(browse, htmx):
    whole = browse("bob").get("/", {"q": "rollback"})
    assert "Query term coverage, best sentence" not in page(whole)
    headers = {**htmx, "CoreCube-Trace": str(whole.context["panels"]["trace_id"]), "HX-Target": "verdict"}
    of_log = f"/log/{whole.context['panels']['trace_id']}/"
    for opened in (
        browse("bob").get("/", {"q": "rollback", "part": "verdict"}, headers=headers),
        browse("bob").get(of_log, {"part": "verdict"}, headers=headers),
    ):
        assert "Query term coverage, best sentence" in page(opened)
        assert "<li" not in page(opened)


def test_a_score_breakdown_is_drawn_when_it_is_opened(browse, htmx):
    whole = browse("bob").get("/", {"q": "rollback"})
    assert page(whole).count("ledger-verdict") == 1
    headers = {**htmx, "CoreCube-Trace": str(whole.context["panels"]["trace_id"]), "HX-Target": "ledger-2"}
    opened = browse("bob").get("/", {"q": "rollback", "hit": "2", "tab": "hits"}, headers=headers)
    assert "Why it ranks #2" in page(opened)
    assert "<li" not in page(opened)
    assert opened.context["panels"]["trace_id"] == whole.context["panels"]["trace_id"]
    assert "Why it ranks #2" in page(browse("bob").get("/", {"q": "rollback", "hit": "2"}))


def test_matched_words_are_marked_and_titles_lead_to_their_passage(browse):
    text = page(browse("bob").get("/", {"q": "roll back staging"}))
    assert "<mark>staging</mark>" in text
    assert re.search(r'href="/documents/[0-9a-f-]{36}/#chunk-0"', text)


def test_a_fragment_is_the_same_results_without_the_page(browse, htmx):
    response = browse("bob").get("/", {"q": "rollback"}, headers=htmx)
    assert "explorer/explorer/_results.html" in templates(response)
    assert "explorer/explorer/search.html" not in templates(response)
    assert "<html" not in page(response)
    assert 'id="announcement" role="status" hx-swap-oob="true"' in page(response)
    assert "HX-Request" in response.headers["Vary"]


@pytest.mark.parametrize(("preset", "words"), [("corecube", "fulltext"), ("helix", "bm25")])
def test_a_preset_offers_its_own_modes_and_keeps_words_alone(browse, htmx, preset, words):
    asked = {"q": "rollback", "preset": preset, "mode": {"bm25": "fulltext", "fulltext": "bm25"}[words]}
    for headers in (None, htmx):
        response = browse("bob").get("/", asked, headers=headers, follow=True)
        assert response.request["QUERY_STRING"] == f"q=rollback&preset={preset}&mode={words}"
        menu = re.search(r'<select[^>]* id="mode".*?</select>', page(response), re.DOTALL)
        assert re.findall(r'<option value="(\w+)"', menu.group()) == ["hybrid", "dense", words]
        assert f'<option value="{words}" selected>' in menu.group()
        assert response.status_code == 200
    assert {record.trace["mode"] for record in SearchRecord.objects.all()} == {words}


def test_a_boosted_or_restored_page_is_whole(browse, htmx):
    for header in ("HX-Boosted", "HX-History-Restore-Request"):
        response = browse("bob").get("/", {"q": "rollback"}, headers={**htmx, header: "true"})
        assert "explorer/explorer/search.html" in templates(response)


def test_without_a_session_there_is_only_the_sign_in_page(client, db, htmx):
    assert client.get("/", {"q": "rollback"}).headers["Location"] == "/login/?next=/%3Fq%3Drollback"
    response = client.get("/", {"q": "rollback"}, headers=htmx)
    assert response.headers["HX-Redirect"] == "/login/?next=/%3Fq%3Drollback"


def test_pages_are_not_kept_by_the_browser(browse):
    assert "no-store" in browse("bob").get("/", {"q": "rollback"}).headers["Cache-Control"]


@pytest.mark.parametrize(
    "address",
    [
        "/explorer/",
        "/explorer/?q=rollback+march+codeword",
        "/?q=rollback&tab=scope&stage=assemble",
        "/?q=rollback&tab=context",
    ],
)
def test_nothing_of_a_hidden_connection_reaches_a_user(browse, address):
    response = browse("bob").get(address)
    assert [word for word in HIDDEN if word in page(response)] == []


def test_nothing_of_a_hidden_connection_is_in_a_stage(browse, htmx):
    Chunk.objects.filter(ordinal=0).update(quality=0.1)  # Too low to be returned.
    address = "/?q=rollback+march+codeword"
    cells = browse("bob").get(address).context["panels"]["funnel"]["cells"]
    assert sum(cell["dropped"] for cell in cells)
    for cell in cells:
        headers = {**htmx, "HX-Target": f"stage-{cell['span'].stage}"}
        drawn = page(browse("bob").get(address, headers=headers))
        assert cell["purpose"] in unescape(drawn)
        assert [word for word in HIDDEN if word in drawn] == []


def test_a_hidden_slug_in_the_address_changes_nothing(browse):
    hidden, unknown = (
        browse("bob").get("/", {"q": "rollback", "without": slug}) for slug in ("vault", "no-such-connection")
    )
    assert hidden.status_code == unknown.status_code == 200
    assert "No results" not in page(hidden)


def test_a_user_without_grants_sees_no_connection(browse):
    response = browse("charlie").get("/", {"q": "rollback"})
    assert "You have no access to any connection yet" in page(response)
    assert "No results" in page(response)
    assert "runbooks" not in page(response).lower()


def test_an_admin_sees_what_is_excluded_and_why(browse, world):
    response = browse("alice").get("/", {"q": "rollback", "as": "bob", "tab": "scope"})
    assert "above clearance" in page(response)
    assert "no clearance on compartment Finance" in page(response)


def test_an_excluded_connection_is_left_out_and_can_be_included_again(browse):
    response = browse("alice").get("/", {"q": "rollback", "without": "runbooks"})
    names = {row["source"] for row in response.context["panels"]["hits"]}
    assert names == {"Vault", "Ledger"}
    assert 'href="?q=rollback&amp;without="' in page(response)
    assert '<input type="hidden" name="without" value="runbooks" form="ask">' in page(response)


def test_with_every_connection_excluded_the_page_says_so(browse):
    response = browse("bob").get("/", {"q": "rollback", "without": "runbooks"})
    assert "No connection is in scope. Include one above." in page(response)


def test_an_admin_searches_as_someone_else_and_it_is_audited(browse, world):
    response = browse("alice").get("/", {"q": "rollback", "as": "bob"})
    assert {row["source"] for row in response.context["panels"]["hits"]} == {"Runbooks"}
    assert "?as=bob#chunk-0" in page(response)
    event = AuditEvent.objects.get(action="search.run_as")
    assert (event.actor, event.subject) == (world.alice, "bob")


def test_searching_as_oneself_is_not_audited(browse):
    browse("alice").get("/", {"q": "rollback", "as": "alice"})
    assert not AuditEvent.objects.filter(action="search.run_as").exists()


@pytest.mark.parametrize("name", ["alice", "charlie", "nobody-of-that-name"])
def test_nobody_but_an_admin_searches_as_someone_else(browse, name):
    response = browse("bob").get("/", {"q": "rollback", "as": name})
    assert response.status_code == 403
    assert "Only an admin may run a search as someone else." in page(response)
    assert not AuditEvent.objects.filter(action="search.run_as").exists()
    assert not SearchRecord.objects.exists()


def test_only_an_admin_is_offered_run_as(browse):
    assert 'name="as"' in page(browse("alice").get("/explorer/"))
    assert 'name="as"' not in page(browse("bob").get("/explorer/"))


def test_only_an_active_user_can_be_run_as(browse, world):
    world.bob.is_active = False
    world.bob.save()
    for name in ("bob", "nobody-of-that-name", "\0", "a\0b"):
        assert browse("alice").get("/", {"q": "rollback", "as": name}).status_code == 404


@pytest.mark.parametrize(
    ("query", "status", "title"),
    [
        ({"q": "   "}, 422, "Empty query"),
        ({"q": "a" * 33_000}, 422, "Query too long"),
        ({"q": "rollback", "preset": "no-such-preset"}, 404, "Unknown preset"),
    ],
)
def test_a_query_that_cannot_be_carried_out_says_why(browse, htmx, query, status, title):
    whole = browse("bob").get("/", query)
    fragment = browse("bob").get("/", query, headers=htmx)
    for response in (whole, fragment):
        assert response.status_code == status
        assert f"<h2>{title}</h2>" in page(response)
        assert 'role="alert"' in page(response)


@pytest.mark.parametrize(
    ("error", "status", "title"),
    [(ModelMissingError(), 503, "Model missing"), (StageError("dense"), 500, "Internal error")],
)
def test_an_engine_that_fails_keeps_its_status(browse, monkeypatch, error, status, title):
    def fail():
        raise error

    monkeypatch.setattr(runtime, "resources", fail)
    response = browse("bob").get("/", {"q": "rollback"})
    assert response.status_code == status
    assert f"<h2>{title}</h2>" in page(response)


@pytest.mark.parametrize(("tab", "opened"), [("trace", "trace"), ("no-such-tab", "hits"), ("", "hits")])
def test_the_address_opens_a_tab(browse, tab, opened):
    text = page(browse("bob").get("/", {"q": "rollback", "tab": tab}))
    assert re.search(rf'data-panel="tab" data-name="{opened}" aria-label="\w+">', text)
    assert len(re.findall(r'data-panel="tab" data-name="\w+" aria-label="\w+">', text)) == 1


@pytest.mark.parametrize(("hit", "opened"), [("2", 2), ("", 1), ("x", 1), ("-1", 1), ("²", 1), ("9" * 5000, 1)])
def test_the_address_opens_a_ledger(browse, hit, opened):
    text = page(browse("bob").get("/", {"q": "rollback queue", "hit": hit}))
    assert re.findall(r'data-panel="hit" data-name="(\d+)">', text) == [str(opened)]


def test_the_context_tells_what_was_left_out_of_it(browse):
    Chunk.objects.filter(document__title="Queues").update(quality=0.1)
    text = page(browse("bob").get("/", {"q": "queue", "tab": "context"}))
    (left_out,) = re.findall(r'<ol class="drops"[^>]*aria-label="Left out of the context">(.*?)</ol>', text)
    assert "Queues" in left_out
    assert "quality too low" in left_out
    assert [word for word in HIDDEN if word in left_out] == []


def test_markup_in_documents_and_queries_is_escaped(browse, world):
    (world.root / "runbooks" / "evil.txt").write_text("rollback <script>alert(1)</script> <mark>not ours</mark>")
    from retrieval.ingest.sync import sync_connection

    sync_connection(world.runbooks)
    text = page(browse("bob").get("/", {"q": 'rollback "><script>alert(2)</script>'}))
    assert "<script>alert" not in text
    assert "<mark>not ours" not in text


def test_a_page_costs_a_fixed_number_of_statements(browse, django_assert_max_num_queries):
    alice = browse("alice")
    with django_assert_max_num_queries(33):
        alice.get("/", {"q": "rollback"})


def test_documents_that_contradict_each_other_are_the_reason_and_the_answer_shows_both(contradicting, browse):
    reader = browse("bob")
    text = page(reader.get("/", {"q": "How many days of paid parental leave does everyone at the warehouse have?"}))
    assert "Conflicting documents." in text
    answer = page(reader.get(f"/answer/{SearchRecord.objects.get().pk}/"))
    assert "Another document says otherwise (Leave rules, updated 9 May 2024)" in answer


def test_the_scope_of_someone_else_needs_no_query(browse):
    text = page(browse("alice").get("/explorer/?as=bob&tab=scope"))
    assert "What bob can see" in text
    assert "Runbooks" in text
