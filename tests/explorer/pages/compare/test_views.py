"""The page that compares two runs."""

import re
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import pytest

from corecube.access import Principal, ScopeRequest
from corecube.models import ApiKey, AuditEvent, Grant
from retrieval.admin import preset_versions
from retrieval.engine.metadata_conditions import Condition, Conditions
from retrieval.engine.state import RequestFilter
from retrieval.engine.stored_filter import FullFilter
from retrieval.models import Document, PresetVersion, SearchRecord
from retrieval.presets.catalog import PRESETS
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.explorer.pages.explorer.test_views import HIDDEN

PATH = "/compare/"
BOTH = {"q": "rollback staging", "a": "corecube:live:hybrid", "b": "corecube:live:fulltext"}


def page(response):
    return response.content.decode()


def resubmitted(response):
    """Return what the form of a page sends when it is sent again."""
    asked = response.context["asked"]
    sent = {"q": asked.text, "a": asked.left.value, "b": asked.right.value}
    for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)" form="ask">', page(response)):
        sent.setdefault(name, []).append(unescape(value))
    return sent


def sources(response):
    return {card.source for lane in response.context["lanes"]["lanes"] for card in lane["cards"]}


@pytest.fixture
def log(world):
    """Return a function that makes a search and returns the side that names it."""

    def make(name, text="rollback", **fields):
        principal = fields.pop("principal", None) or world.principal(name)
        return f"log:{search(SearchRequest(text=text, **fields), principal=principal).id}"

    return make


def test_it_asks_for_a_query_first(browse):
    response = browse("bob").get(PATH)
    assert response.status_code == 200
    assert "Compare two searches" in page(response)
    assert not SearchRecord.objects.exists()


def test_both_sides_run_and_stand_beside_each_other(browse):
    response = browse("alice").get(PATH, BOTH)
    panel = response.context["compared"]
    assert response.status_code == 200
    assert SearchRecord.objects.count() == 2
    assert [lane["label"] for lane in panel["lanes"]["lanes"]] == ["A", "B"]
    assert sum(panel["counts"][name] for name in ("up", "down", "same", "only_left")) == len(panel["left"].hits)
    assert (panel["left"].mode, panel["right"].mode) == ("hybrid", "fulltext")
    assert 0 <= panel["found"].rbo <= 1
    assert {label for label, left, right in panel["facts"] if left != right} >= {"Mode", "Fingerprint"}
    assert panel["changes"] == ()
    assert 'id="chart-rank-flow"' in page(response)
    assert "style=" not in page(response).split("<main")[1].split('<figure class="chart"')[0]


def test_a_run_against_itself_moves_nothing(browse):
    panel = browse("bob").get(PATH, {**BOTH, "b": BOTH["a"]}).context["compared"]
    assert (panel["found"].jaccard, {name for name, count in panel["counts"].items() if count}) == (1.0, {"same"})
    assert panel["found"].rbo == pytest.approx(1.0)


def test_a_fragment_is_the_same_without_the_page(browse, htmx):
    response = browse("bob").get(PATH, BOTH, headers=htmx)
    assert "<html" not in page(response)
    assert 'id="announcement" role="status" hx-swap-oob="true"' in page(response)
    assert "only in A" in response.context["announcement"]


def test_the_form_keeps_what_the_address_says(browse):
    text = page(browse("bob").get(PATH, {**BOTH, "view": "table"}))
    assert '<option value="corecube:live:hybrid" selected>General search</option>' in text
    assert '<option value="corecube:live:fulltext" selected>' in text
    assert 'data-panel="view" data-name="table">' in text
    assert (
        'href="?q=rollback+staging&amp;a=corecube%3Alive%3Afulltext&amp;b=corecube%3Alive%3Ahybrid&amp;view=table"'
        in text
    )


def test_without_a_session_there_is_only_the_sign_in_page(client, db):
    assert client.get(PATH, BOTH).headers["Location"].startswith("/login/")


def test_what_cannot_be_run_says_why(browse):
    bob = browse("bob")
    for changed, status, title in (
        ({"b": "corecube:live:graph"}, 422, "Unknown mode"),
        ({"b": "nope:live:hybrid"}, 404, "Unknown preset"),
        ({"q": "   "}, 422, "Empty query"),
        ({"a": "corecube:draft:hybrid"}, 403, "Not permitted"),
        ({"as": "alice"}, 403, "Not permitted"),
    ):
        response = bob.get(PATH, {**BOTH, **changed})
        assert response.status_code == status
        assert f"<h2>{title}</h2>" in page(response)


@pytest.mark.usefixtures("draft")
def test_every_run_that_is_offered_can_be_made(browse):
    groups = browse("alice").get(PATH).context["choices"]
    assert [heading for heading, _ in groups] == ["Presets", "Single leg of a preset", "Reference versions"]
    labels = [label for _, options in groups for _, label in options]
    assert labels[:2] == ["General search", "General search draft"]
    assert len(labels) == len(set(labels))
    offered = {value for _, options in groups for value, _ in options}
    assert {"helix:live:bm25", "corecube:draft:fulltext", "consolidated:live:dense"} <= offered
    assert "helix:live:fulltext" not in offered
    for preset, _, mode in (value.split(":") for value in offered):
        pipeline = PRESETS[preset].build(PRESETS[preset].defaults, runtime.resources())
        assert pipeline.in_mode(mode)


# Drafts


@pytest.fixture
def draft(world):
    preset = PRESETS["corecube"]
    preset_versions.save_draft(preset=preset, values={"blend.dense": 0.9, "fusion.pool": 5}, note="", actor=world.alice)


def test_an_admin_compares_the_draft_with_what_is_live_and_sees_which_numbers_differ(browse, draft):
    response = browse("alice").get(PATH, {**BOTH, "b": "corecube:draft:hybrid"})
    changes = response.context["compared"]["changes"]
    assert [(row.name, row.before, row.after) for row in changes] == [
        ("fusion.pool", "160 hits", "5 hits"),
        ("blend.dense", "0.6", "0.9"),
    ]
    assert "Changed settings" in page(response)


def test_only_an_admin_learns_of_a_draft(browse, draft):
    assert "corecube:draft:hybrid" in page(browse("alice").get(PATH))
    assert "draft" not in page(browse("bob").get(PATH))
    assert browse("bob").get(PATH, {**BOTH, "b": "corecube:draft:hybrid"}).status_code == 403
    assert PresetVersion.objects.exists()


def test_a_draft_is_compared_with_what_is_live_as_it_was_tried(browse, draft):
    limits = FullFilter(RequestFilter(source_types=frozenset({"markdown"}))).text
    tried = {
        "q": "rollback",
        "draft": "1",
        "as": "bob",
        "without": "vault",
        "filter": limits,
        "mode": "dense",
        "hit": "2",
    }
    text = page(browse("alice").get("/", tried))
    address = unescape(re.search(r'<a href="([^"]+)">Compare with live</a>', text).group(1))
    sides = {"a": "corecube:live:dense", "b": "corecube:draft:dense"}
    kept = {name: tried[name] for name in ("q", "as", "without", "filter")}
    assert dict(parse_qsl(urlsplit(address).query)) == kept | sides
    assert browse("alice").get(address).context["principal"].user.username == "bob"


# A logged search


def test_then_against_now_takes_query_depth_and_narrowing_of_then(browse, log, world):
    side = log("alice", "rollback codeword", top_k=2, narrowing=ScopeRequest(exclude=("vault",)))
    response = browse("alice").get(PATH, {"a": side})
    panel = response.context["compared"]
    now = SearchRecord.objects.first()
    assert (now.query, now.top_k, now.trace["mode"]) == ("rollback codeword", 2, "hybrid")
    assert world.vault.pk not in now.connection_ids
    assert [hit.chunk_id for hit in panel["left"].hits] == [hit.chunk_id for hit in panel["right"].hits]
    assert (panel["found"].jaccard, panel["unseen"], panel["is_skewed"]) == (1.0, (0, 0), False)
    assert sources(response) == {"Runbooks", "Ledger"}
    assert panel["left"].side.value in page(response)


def test_what_both_sides_say_of_themselves_is_no_difference(browse, log):
    panel = browse("bob").get(PATH, {"a": log("bob", "rollback xylophone")}).context["compared"]
    assert panel["left"].notes == panel["right"].notes
    assert [(side, badge.text) for side, badge in panel["notes"]] == [
        ("A", "few exact matches: searched for any term"),
        ("B", "few exact matches: searched for any term"),
    ]


def test_the_last_connection_that_was_left_out_then_is_included_again_and_stays(browse, log):
    alice = browse("alice")
    then = alice.get(PATH, {"a": log("alice", "rollback codeword", narrowing=ScopeRequest(exclude=("vault",)))})
    assert resubmitted(then)["without"] == ["vault"]
    address = re.search(r'<a class="source is-off" id="source-\w+" href="([^"]+)"', page(then)).group(1)
    now = alice.get(PATH + unescape(address))
    again = alice.get(PATH, resubmitted(now))
    assert resubmitted(now)["without"] == resubmitted(again)["without"] == [""]
    assert sources(now) == sources(again) == {"Runbooks", "Ledger", "Vault"}
    assert "is-off" not in page(now) + page(again)


def test_an_admin_sees_another_persons_search_as_that_person_and_it_is_audited(browse, log, world):
    response = browse("alice").get(PATH, {"a": log("bob", "rollback march codeword"), "b": "corecube:live:hybrid"})
    assert sources(response) == {"Runbooks"}
    assert "?as=bob#chunk-" in page(response)
    event = AuditEvent.objects.get(action="search.run_as")
    assert (event.actor, event.subject) == (world.alice, "bob")
    now = SearchRecord.objects.first()
    assert (now.user, now.actor, now.for_another) == (world.bob, world.alice, True)


def test_a_key_narrows_now_as_it_did_then(browse, log, world):
    key, _ = ApiKey.issue(user=world.alice, name="narrow")
    key.compartments.set([world.ledger.compartment])
    side = log("alice", "rollback", principal=Principal(world.alice, key))
    response = browse("alice").get(PATH, {"a": side, "as": "alice"})
    assert sources(response) == {"Ledger"}
    assert SearchRecord.objects.first().connection_ids == [world.ledger.pk]


def test_somebody_elses_search_does_not_exist(browse, log):
    assert browse("bob").get(PATH, {"a": log("alice")}).status_code == 404
    assert browse("bob").get(PATH, {**BOTH, "b": log("alice")}).status_code == 404
    assert browse("bob").get(PATH, {"a": "log:x"}).status_code == 404


def test_what_was_found_with_access_that_is_gone_is_counted_and_not_named(browse, log, world):
    Grant.objects.create(user=world.bob, compartment=world.ledger.compartment, clearance=3)
    side = log("bob", "rollback costs crowns")
    Grant.objects.filter(user=world.bob).delete()
    response = browse("bob").get(PATH, {"a": side, "b": "corecube:live:hybrid"})
    panel = response.context["compared"]
    assert panel["unseen"][0] > 0
    assert panel["unseen"][1] == 0
    assert sources(response) == {"Runbooks", ""}
    text = page(response)
    assert f"Deleted or not visible to you: {panel['unseen'][0]} in A, 0 in B." in text
    assert [word for word in HIDDEN if word in text] == []
    assert "Costs" not in text
    assert str(world.ledger.documents.get().pk) not in text


def test_nothing_of_a_hidden_connection_reaches_a_user(browse):
    bob = browse("bob")
    for right in ("corecube:live:dense", "corecube:live:fulltext"):
        response = bob.get(PATH, {**BOTH, "q": "rollback march codeword", "b": right})
        assert response.status_code == 200
        assert [word for word in HIDDEN if word in page(response)] == []


def test_a_hidden_slug_in_the_address_changes_nothing(browse):
    hidden, unknown = (browse("bob").get(PATH, {**BOTH, "without": slug}) for slug in ("vault", "no-such-connection"))
    assert hidden.status_code == unknown.status_code == 200
    assert sources(hidden) == sources(unknown) == {"Runbooks"}


def test_a_query_whose_text_was_not_kept_is_asked_for(browse, log, settings):
    settings.CORECUBE_KEEP_QUERY_TEXT = False
    side = log("bob")
    assert "Query text not stored" in page(browse("bob").get(PATH, {"a": side}))
    response = browse("bob").get(PATH, {"a": side, "q": "rollback"})
    assert response.context["compared"]["found"].jaccard == 1.0


def test_another_query_than_that_of_then_is_told(browse, log):
    response = browse("bob").get(PATH, {"a": log("bob", "rollback"), "q": "draining the queue"})
    assert response.context["compared"]["is_skewed"]
    assert "A and B ran different queries" in page(response)


def test_the_rail_leads_here_for_everybody(browse):
    for name in ("alice", "bob"):
        assert re.search(r'class="rail-link" href="/compare/"', page(browse(name).get("/explorer/")))
    assert re.search(r'href="/compare/" aria-current="page"', page(browse("bob").get(PATH)))


def test_a_comparison_costs_a_fixed_number_of_statements(browse, django_assert_max_num_queries):
    alice = browse("alice")
    alice.get(PATH, BOTH)
    with django_assert_max_num_queries(55):
        alice.get(PATH, BOTH)


def test_a_logged_search_is_compared_within_what_it_asked_for(browse, log, world):
    Document.objects.filter(title="Rolling back").update(metadata={"author": "Ann"})
    side = log("alice", conditions=Conditions((Condition(("author",), "is", "Ann"),)))
    response = browse("alice").get(PATH, {"a": side})
    panel = response.context["compared"]
    assert panel["found"].rbo == pytest.approx(1)
    assert panel["counts"]["only_left"] == panel["counts"]["only_right"] == 0
    assert response.context["filter_words"] == ("author is Ann",)
    whole = browse("alice").get(PATH, {"a": side, "filter": ""})
    again = browse("alice").get(PATH, resubmitted(whole))
    assert whole.context["compared"]["counts"]["only_right"] == again.context["compared"]["counts"]["only_right"] > 0
    assert whole.context["filter_words"] == again.context["filter_words"] == ()


def test_what_a_logged_search_asked_for_is_kept_where_it_could_not_be_compared(browse, log):
    refused = browse("bob").get(PATH, {"a": log("bob", narrowing=ScopeRequest(exclude=("runbooks",))), "as": "alice"})
    assert refused.status_code == 403
    assert not {"without", "filter"} & set(resubmitted(refused))
