"""The page that asks every preset."""

import re

import pytest

from corecube.access import Principal
from corecube.errors import OverloadedError
from corecube.models import ApiKey, AuditEvent
from explorer.pages.side_by_side import panels
from explorer.pages.side_by_side.panels import ask_each
from retrieval.models import LanguageModel, SearchRecord, Usage
from retrieval.presets.catalog import PRESETS, TUNED
from retrieval.search.prepare import kept_relevance
from retrieval.search.request import SearchRequest
from tests.explorer.pages.explorer.test_views import HIDDEN
from tests.fake_llm import FakeLLM
from tests.retrieval.search.test_relevance import ASKED as JUDGED
from tests.retrieval.search.test_relevance import judging

PATH = "/side-by-side/"
AWAITED = {"q": "rollback staging queue"}
ASKED = {**AWAITED, "whole": "1"}
ALL = tuple(TUNED)


def page(response):
    return response.content.decode()


def sides_of(response):
    return response.context["sides"]


def sources(response):
    return {hit.card.source for column in sides_of(response)["columns"] for hit in column["found"]["hits"]}


@pytest.fixture
def refusing(monkeypatch):
    """Return a function that has the searches of some presets turned away."""

    def refuse(*presets):
        def search(request, *, principal):
            if request.preset in presets:
                raise OverloadedError(reason="full", retry_after_seconds=3)
            return found(request, principal=principal)

        monkeypatch.setattr(panels, "search", search)

    found = panels.search
    return refuse


def test_it_asks_for_a_query_first(browse):
    response = browse("bob").get(PATH)
    assert response.status_code == 200
    assert "Run one query with every preset" in page(response)
    assert all(preset.description in page(response) for preset in TUNED.values())
    assert not SearchRecord.objects.exists()


def test_the_page_comes_before_what_the_presets_find(browse):
    response = browse("bob").get(PATH, AWAITED)
    assert response.status_code == 200
    assert not SearchRecord.objects.exists()
    text = page(response)
    assert 'hx-get="?q=rollback+staging+queue" hx-trigger="load" hx-target="#results"' in text
    assert '<noscript><p><a href="?q=rollback+staging+queue&amp;whole=1">' in text


def test_every_preset_searches_with_a_trace_of_its_own(browse):
    response = browse("alice").get(PATH, ASKED)
    panel = sides_of(response)
    assert response.status_code == 200
    assert panel["names"] == tuple(column["preset"] for column in panel["columns"]) == ALL
    records = {record.preset: record for record in SearchRecord.objects.all()}
    assert set(records) == set(ALL)
    for column in panel["columns"]:
        record = records[column["preset"]]
        assert column["found"]["trace"] == str(record.pk)
        assert f'href="/log/{record.pk}/"' in page(response)
        assert record.top_k == PRESETS[column["preset"]].defaults.default_top_k
        assert record.surface == SearchRecord.Surface.EXPLORER
        assert len(column["found"]["hits"]) == record.hit_count
    assert "style=" not in page(response).split("<main")[1].split('<figure class="chart"')[0]


def test_a_hit_says_where_the_others_have_it(browse):
    panel = sides_of(browse("alice").get(PATH, ASKED))
    ranks = {
        column["preset"]: {hit.card.chunk_id: hit.card.rank for hit in column["found"]["hits"]}
        for column in panel["columns"]
    }
    assert any(ranks.values())
    for column in panel["columns"]:
        assert [hit.card.rank for hit in column["found"]["hits"]] == list(range(1, len(column["found"]["hits"]) + 1))
        for hit in column["found"]["hits"]:
            others = {name: found.get(hit.card.chunk_id) for name, found in ranks.items() if name != column["preset"]}
            assert dict(hit.elsewhere) == others
            assert hit.found == 1 + sum(rank is not None for rank in others.values())


def test_the_overlap_counts_what_the_columns_show(browse):
    panel = sides_of(browse("alice").get(PATH, ASKED))
    tops = [{hit.card.chunk_id for hit in column["found"]["hits"]} for column in panel["columns"]]
    for own, (row, top) in enumerate(zip(panel["overlaps"], tops, strict=True)):
        for other, cell in enumerate(row["cells"]):
            expected = None if own == other else (len(top & tops[other]), max(len(top), len(tops[other])))
            assert (cell and (cell.shared, cell.of)) == expected
        elsewhere = set().union(*(found for place, found in enumerate(tops) if place != own))
        assert {chunk_id for chunk_id, _ in row["alone"]} == top - elsewhere
    assert panel["chunks"] == len(set().union(*tops))
    assert panel["in_all"] == len(set.intersection(*tops))


def test_time_context_and_verdict_stand_beside_each_other(browse):
    response = browse("bob").get(PATH, ASKED)
    panel = sides_of(response)
    assert [key for key, *_ in panel["groups"]] == ["question", "find", "merge", "rank", "pack"]
    assert all(len(cells) == len(ALL) for *_, cells in panel["groups"])
    for column in panel["columns"]:
        context = column["found"]["context"]
        assert context["used"] == sum(passage.token_count for passage in context["passages"])
        assert all(passage.header in page(response).replace("&gt;", ">") for passage in context["passages"])
        assert column["found"]["answerability"]["verdict"] in page(response)
    assert 'id="chart-preset-flow"' in page(response)


def test_without_javascript_all_is_in_the_page(browse):
    text = page(browse("bob").get(PATH, ASKED))
    assert 'hx-trigger="load"' not in text
    assert len(re.findall(r'class="side-column panel" id="preset-', text)) == len(ALL)
    assert '<form class="ask" id="ask" role="search" method="get" action="/side-by-side/"' in text


def test_a_fragment_is_the_same_without_the_page(browse, htmx):
    response = browse("bob").get(PATH, AWAITED, headers=htmx)
    assert "<html" not in page(response)
    assert 'id="announcement" role="status" hx-swap-oob="true"' in page(response)
    assert response.context["announcement"].startswith(f"{len(ALL)} presets found ")


def test_what_no_preset_could_answer_is_refused_once(browse):
    for changed, status, title in (
        ({"q": "   "}, 422, "Empty query"),
        ({"q": "   ", "whole": "1"}, 422, "Empty query"),
        ({"q": "x" * 100_000}, 422, "Query too long"),
        ({**ASKED, "as": "alice"}, 403, "Not permitted"),
    ):
        response = browse("bob").get(PATH, changed)
        assert response.status_code == status
        assert f"<h2>{title}</h2>" in page(response)
        assert "sides" not in response.context
    assert not SearchRecord.objects.exists()


def test_a_preset_that_is_turned_away_leaves_the_others(browse, refusing):
    refusing("helix")
    response = browse("bob").get(PATH, ASKED)
    panel = sides_of(response)
    assert response.status_code == 200
    assert panel["names"] == tuple(name for name in ALL if name != "helix")
    assert [column["failure"]["title"] for column in panel["columns"] if column["failure"]] == ["Overloaded"]
    assert panel["announcement"].endswith("1 failed.")
    assert all(len(row["cells"]) == len(ALL) - 1 for row in panel["overlaps"])
    assert "Overloaded." in page(response)


def test_where_all_are_turned_away_the_status_says_so(browse, refusing):
    refusing(*ALL)
    response = browse("bob").get(PATH, ASKED)
    assert response.status_code == 429
    assert sides_of(response)["chart"] is None
    assert "Overloaded." in page(response)


def test_presets_that_a_key_may_not_use_are_left_out(world):
    key, _ = ApiKey.issue(user=world.bob, name="narrow")
    key.presets = ["helix", "contextpack"]
    attempts = ask_each(SearchRequest(text="rollback", top_k=None), Principal(world.bob, key))
    assert [attempt.preset.name for attempt in attempts] == ["helix", "contextpack"]
    assert all(attempt.outcome for attempt in attempts)


# Who sees what


def test_nothing_of_a_hidden_connection_reaches_a_user(browse):
    bob = browse("bob")
    for query in ("rollback march codeword", "stolen passphrase breach", "costs crowns"):
        response = bob.get(PATH, {"q": query, "whole": "1"})
        assert response.status_code == 200
        assert [word for word in HIDDEN if word in page(response)] == []
        assert sources(response) <= {"Runbooks"}


def test_who_may_see_nothing_finds_nothing(browse):
    response = browse("charlie").get(PATH, ASKED)
    assert response.status_code == 200
    assert sources(response) == set()
    assert (sides_of(response)["chunks"], sides_of(response)["chart"]) == (0, None)
    assert 'id="side-overlap"' not in page(response)
    assert [word for word in (*HIDDEN, "Runbooks", "deployctl") if word in page(response)] == []


def test_a_hidden_slug_in_the_address_changes_nothing(browse):
    hidden, unknown = (browse("bob").get(PATH, {**ASKED, "without": slug}) for slug in ("vault", "no-such-connection"))
    assert hidden.status_code == unknown.status_code == 200
    assert sources(hidden) == sources(unknown) == {"Runbooks"}


def test_connections_can_be_left_out(browse, world):
    response = browse("alice").get(PATH, {"q": "rollback", "without": ["vault", "ledger"], "whole": "1"})
    assert sources(response) == {"Runbooks"}
    assert all(record.connection_ids == [world.runbooks.pk] for record in SearchRecord.objects.all())
    assert '<input type="hidden" name="without" value="vault" form="ask">' in page(response)


def test_an_admin_looks_through_another_persons_eyes_and_it_is_audited_once(browse, world):
    response = browse("alice").get(PATH, {"q": "rollback march codeword", "as": "bob"})
    assert sources(response) == {"Runbooks"}
    assert "?as=bob#chunk-" in page(response)
    event = AuditEvent.objects.get(action="search.run_as")
    assert (event.actor, event.subject) == (world.alice, "bob")
    assert {(record.user, record.actor) for record in SearchRecord.objects.all()} == {(world.bob, world.alice)}


def test_without_a_session_there_is_only_the_sign_in_page(client, db):
    assert client.get(PATH, ASKED).headers["Location"].startswith("/login/")


def test_the_rail_leads_here_for_everybody(browse):
    for name in ("alice", "bob"):
        assert re.search(r'class="rail-link" href="/side-by-side/"', page(browse(name).get("/explorer/")))
    assert re.search(r'href="/side-by-side/" aria-current="page"', page(browse("bob").get(PATH)))


# A language model that judges


@pytest.fixture
def model(world):
    kept_relevance.cache_clear()
    with FakeLLM() as fake:
        fake.says(judging)
        LanguageModel.objects.create(
            slug="m",
            name="M",
            base_url=fake.url,
            model="fake-small",
            is_default=True,
            max_retries=0,
            prompt_price=1000,
            completion_price=2000,
        )
        yield fake


@pytest.mark.usefixtures("model")
def test_what_the_judging_took_is_told_and_its_cost_to_admins_alone(browse):
    response = browse("alice").get(PATH, {"q": JUDGED, "whole": "1"})
    used = Usage.objects.get()
    columns = {column["preset"]: column["found"] for column in sides_of(response)["columns"]}
    (use,) = columns["contextpack"]["models"]
    assert (use.calls, use.prompt_tokens, use.completion_tokens) == (1, used.prompt_tokens, used.completion_tokens)
    assert columns["contextpack"]["cost"] == used.cost > 0
    assert columns["helix"]["models"] == ()
    assert "Language model cost" in page(response)
    again = sides_of(browse("alice").get(PATH, {"q": JUDGED, "whole": "1"}))
    (kept,) = next(column["found"]["models"] for column in again["columns"] if column["preset"] == "contextpack")
    assert (kept.calls, kept.known, Usage.objects.count()) == (0, 1, 1)
    plain = browse("bob").get(PATH, {"q": JUDGED, "whole": "1"})
    assert "m: 1 call," in page(plain)
    assert "Language model cost" not in page(plain)


def test_judging_that_failed_costs_what_it_took(browse, model):
    model.says("I am sorry, I cannot do that.")
    columns = sides_of(browse("alice").get(PATH, {"q": JUDGED, "whole": "1"}))["columns"]
    found = {column["preset"]: column["found"] for column in columns}
    assert "language model failed to score" in {badge.text for badge in found["contextpack"]["fallbacks"]}
    assert found["contextpack"]["cost"] == sum(used.cost for used in Usage.objects.all()) > 0
    assert found["helix"]["cost"] == 0
