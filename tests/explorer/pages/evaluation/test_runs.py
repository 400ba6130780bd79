"""Pages of evaluation runs."""

import codecs
import html
import json
from uuid import uuid4

import pytest

from explorer.pages.evaluation import comparison
from retrieval.admin.preset_versions import promote, save_draft
from retrieval.evaluation.question_sets import CaseFacts, expect, save_case
from retrieval.evaluation.runs import run_waiting
from retrieval.models import EvaluationRun, Judgment, LanguageModel, RunCase, SearchRecord
from retrieval.presets.catalog import preset_named
from tests.questions import ROLLBACK, TANGERINE

pytestmark = pytest.mark.usefixtures("unhurried")


def page(response):
    return response.content.decode()


@pytest.fixture
def start(browse, questions):
    """Start a run as alice, measure it, and return it."""

    def started(configuration="corecube", **more):
        browse("alice").post("/judgments/release-questions/runs/", {"configuration": configuration, **more})
        run_waiting()
        return EvaluationRun.objects.latest("created_at")

    return started


def test_a_run_is_started_followed_and_read(browse, questions, htmx):
    client = browse("alice")
    response = client.post("/judgments/release-questions/runs/", {"configuration": "helix"})
    address = response.headers["Location"]
    waiting = page(client.get(address))
    assert "queued: 0 of 3 cases" in waiting.lower()
    assert f'hx-get="{address}"' in waiting
    run_waiting()
    ended = client.get(address, headers=htmx)
    part = page(ended)
    assert ended.headers["HX-Refresh"] == "true"
    assert "<html" not in part
    assert "hx-get" not in part
    assert "1 of 1" in part
    listed = page(client.get("/judgments/release-questions/"))
    assert address in listed
    assert '<a href="/judgments/">Question sets</a>' in page(client.get(address))


def test_a_run_without_judgments_leads_to_judging(browse, start):
    hint = "No answerable question has judgments yet"
    assert hint not in page(browse("alice").get(f"/runs/{start().pk}/"))
    Judgment.objects.all().delete()
    shown = page(browse("alice").get(f"/runs/{start().pk}/"))
    assert hint in shown
    assert '<a href="/judgments/release-questions/judge/">Judge the questions</a>' in shown


def test_a_drawn_question_is_neither_answerable_nor_refused_wrongly(browse, start, questions, world):
    case, _ = save_case(questions, "who sells umbrellas in brazil", actor=world.alice)
    client = browse("alice")
    assert "unknown</span>" in page(client.get("/judgments/release-questions/"))
    run = client.get(f"/runs/{start().pk}/")
    assert run.context["wrongly_refused"] == "0 of 2"
    assert 'is-bad">refused<' not in page(run)
    expect(case, (("brollies",),), actor=world.alice)
    assert "unknown</span>" not in page(client.get("/judgments/release-questions/"))
    run = client.get(f"/runs/{EvaluationRun.objects.get().pk}/")
    assert run.context["wrongly_refused"] == "1 of 3"
    assert 'is-bad">refused<' in page(run)


def test_a_case_of_another_user_opens_with_their_access(browse, questions, world):
    save_case(questions, "codeword", actor=world.alice, facts=CaseFacts(user=world.charlie))
    shown = page(browse("alice").get("/judgments/release-questions/"))
    assert 'href="/explorer/?q=codeword&amp;as=charlie"' in shown
    assert 'href="/explorer/?q=tangerine"' in shown


def test_a_tag_shows_how_many_of_its_cases_are_measured(browse, start, questions, world):
    questions.cases.exclude(query=TANGERINE).update(tags=["release"])
    shown = page(browse("alice").get(f"/runs/{start().pk}/"))
    assert '<th scope="row">release</th><td class="number nowrap">1 of 2</td>' in shown
    assert "Searched and graded with the access of each case's user, else of alice." in html.unescape(shown)


def test_two_runs_are_compared(browse, start):
    first, second = start(), start("helix")
    shown = browse("alice").get(f"/runs/compare/?a={first.pk}&b={second.pk}")
    assert shown.context["queries"] == 3
    assert "No winner" in shown.context["verdict"]
    assert next(line.name for line in shown.context["lines"]) == "nDCG@10"
    assert [line.name for line in shown.context["lines_at"]] == ["nDCG@5", "MRR@5", "recall@5", "precision@5", "MAP@5"]
    assert shown.context["lines_at"][3].first == "0.200"
    assert "runs-scatter" in page(shown)
    other = browse("alice").get(f"/runs/compare/?a={first.pk}&b={second.pk}&k=99")
    assert other.context["lines_at"][4].name == "MAP@20"
    assert ">Compare</button>" in page(browse("alice").get("/judgments/release-questions/"))


@pytest.mark.parametrize(
    ("kind", "holds"), [("json", ROLLBACK), ("csv", f"{ROLLBACK},yes,1.0,"), ("run", " Q0 "), ("qrels", " 3\n")]
)
def test_a_run_is_exported(browse, start, kind, holds):
    response = browse("alice").get(f"/runs/{start().pk}/export.{kind}")
    assert response.headers["Content-Disposition"] == f'attachment; filename="release-questions-corecube.{kind}"'
    assert holds in page(response)
    assert response.content.startswith(codecs.BOM_UTF8) == (kind == "csv")
    if kind == "json":
        assert json.loads(response.content)["measures"]["ndcg"] == 1.0


def test_a_run_is_cancelled_and_deleted(browse, questions):
    client = browse("alice")
    address = client.post("/judgments/release-questions/runs/", {"configuration": "corecube"}).headers["Location"]
    assert "Cancelled after 0 of 3 cases" in page(client.post(f"{address}change/", {"action": "cancel"}, follow=True))
    assert client.post(f"{address}change/", {"action": "no-such"}).status_code == 404
    client.post(f"{address}change/", {"action": "delete"})
    assert not EvaluationRun.objects.exists()


def test_a_preset_that_is_not_there_is_told(browse, questions):
    sent = {"configuration": "no-such"}
    assert "Unknown preset" in page(browse("alice").post("/judgments/release-questions/runs/", sent, follow=True))


@pytest.mark.parametrize("who", ["limited admin", "no admin"])
def test_a_run_outside_the_readers_scope_is_not_there(browse, start, world, who):
    run, own = start(), start("helix")
    world.bob.is_staff = who == "limited admin"
    world.bob.save()
    client = browse("bob")
    addresses = ["", "export.json", "export.run", "export.qrels"]
    assert {client.get(f"/runs/{run.pk}/{it}").status_code for it in addresses} == {404}
    assert client.get(f"/runs/compare/?a={run.pk}&b={own.pk}").status_code == 404
    assert client.get(f"/runs/compare/?a={own.pk}&b={own.pk}&b={run.pk}").status_code == 404
    assert client.post(f"/runs/{run.pk}/change/", {"action": "delete"}).status_code == 404
    assert str(run.pk) not in page(client.get("/judgments/release-questions/"))
    assert EvaluationRun.objects.count() == 2


def test_several_runs_are_compared_with_a_baseline(browse, start):
    runs = [start(), start("helix"), start("consolidated")]
    client = browse("alice")
    shown = client.get(f"/runs/compare/?a={runs[0].pk}&b={runs[1].pk}&b={runs[2].pk}")
    assert (shown.status_code, shown.context["queries"]) == (200, 3)
    assert [(letter, text) for letter, text, _ in shown.context["verdicts"]] == [
        ("B", "Agent search, version 1"),
        ("C", "Report evidence, version 1"),
    ]
    cell, mean, others = shown.context["measured"][0]
    assert (cell["name"], mean, [name for name, _, _ in others]) == ("nDCG@10", 1.0, ["B", "C"])
    widths = [it.width for it, _, _ in shown.context["spreads"]]
    assert widths == sorted(widths, reverse=True)
    (_, link), _ = shown.context["spreads"][0][2]
    assert f"a=run%3A{runs[0].pk}&b=run%3A{runs[1].pk}" in link
    assert "Holm" in page(shown)
    assert page(shown).count(f"/runs/{runs[2].pk}/") == 1


def test_large_figures_have_separators(browse, start):
    runs = [start(), start("helix")]
    RunCase.objects.update(tokens=2301, milliseconds=1204.4)
    client = browse("alice")
    shown = page(client.get(f"/runs/{runs[0].pk}/"))
    assert "<dd>2,301</dd>" in shown
    assert "<dd>1,204 / 1,204 ms</dd>" in shown
    compared = page(client.get(f"/runs/compare/?a={runs[0].pk}&b={runs[1].pk}"))
    assert '<td class="number">2,301</td>' in compared


def test_too_many_runs_and_none_are_refused(browse, start):
    run = start()
    client, others = browse("alice"), "".join(f"&b={uuid4()}" for _ in range(5))
    shown = client.get(f"/runs/compare/?a={run.pk}", follow=True)
    assert "Select a baseline and 1 to 4 other runs" in page(shown)
    assert "Select a baseline and 1 to 4 other runs" in page(
        client.get(f"/runs/compare/?a={run.pk}{others}", follow=True)
    )
    assert client.get(f"/runs/compare/?a={run.pk}&b={uuid4()}").status_code == 404
    assert client.get("/runs/compare/?a=x").status_code == 404


def test_a_run_with_answers_shows_what_they_are_worth(browse, start, questions, world):
    client = browse("alice")
    client.post(
        f"/judgments/cases/{questions.cases.get(query=ROLLBACK).pk}/", {"action": "expect", "expected": "deployctl"}
    )
    listed = page(client.get("/judgments/release-questions/"))
    assert "<summary>deployctl<" in listed
    run = start(answers="yes")
    shown = client.get(f"/runs/{run.pk}/")
    cells = {it["name"]: it["value"] for it in shown.context["answers"]["cells"]}
    assert (cells["Right"], cells["Correctly refused or hedged"]) == ("1.000", "1.000")
    assert shown.context["answers"]["writers"] == ["quotes"]
    assert "The text of answers is not stored" in page(shown)
    plain = start()
    assert client.get(f"/runs/{plain.pk}/").context["answers"] is None
    listed = page(client.get("/judgments/release-questions/"))
    assert ">Right</th>" in listed
    compared = client.get(f"/runs/compare/?a={run.pk}&b={run.pk}")
    assert "Supported" in [line.name for line in compared.context["lines"]]
    assert "Right" not in [line.name for line in client.get(f"/runs/compare/?a={run.pk}&b={plain.pk}").context["lines"]]


def test_what_a_run_uses_is_chosen_where_there_is_a_choice(browse, start, questions, world):
    client = browse("alice")
    bare = page(client.get("/judgments/release-questions/"))
    assert 'name="language_model"' not in bare
    assert 'name="index"' not in bare
    LanguageModel.objects.create(slug="local", name="Local", base_url="http://localhost:9/v1", model="small")
    assert '<option value="local">Local</option>' in page(client.get("/judgments/release-questions/"))
    run = start(language_model="extractive", answers="yes")
    assert "General search, version 1, quotes" in page(client.get(f"/runs/{run.pk}/"))
    for wrong in ({"language_model": "no-such"}, {"index": "99"}):
        sent = {"configuration": "corecube", **wrong}
        assert "There is no" in page(client.post("/judgments/release-questions/runs/", sent, follow=True))
    assert EvaluationRun.objects.count() == 1


def test_a_query_is_compared_with_what_its_runs_measured(browse, start, world):
    first, second = start(), start("helix", language_model="extractive")
    draft = save_draft(preset=preset_named("corecube"), values={"blend.dense": 0.0}, note="", actor=world.alice)
    promote(preset=preset_named("corecube"), number=draft.number, actor=world.alice)
    client = browse("alice")
    shown = client.get(f"/compare/query/?q=rollback&a=run:{first.pk}&b=run:{second.pk}")
    assert shown.status_code == 200
    compared = shown.context["compared"]
    assert [side.label for side in (compared["left"].side, compared["right"].side)] == [
        "Run of General search, version 1",
        "Run of Agent search, version 1, quotes",
    ]
    assert compared["left"].config.blend.dense > 0
    logged = SearchRecord.objects.filter(surface="explorer", preset="corecube").values_list("trace", "is_ordinary")
    assert [(it["version"], it["is_draft"], ordinary) for it, ordinary in logged] == [(1, False, False)]
    assert {"fuse", "complete", "access"} <= {it.stage for _, it in compared["stages"]}
    text = page(shown)
    assert "Agreement by stage" in text
    assert "<html" not in text
    assert compared["chart"].data_id in text
    assert "Agreement by stage" in page(client.get(f"/compare/?q=rollback&a=run:{first.pk}&b=run:{second.pk}"))


@pytest.mark.parametrize("who", ["limited admin", "no admin"])
def test_what_a_run_measured_is_no_side_for_others(browse, start, world, who):
    run = start()
    world.bob.is_staff = who == "limited admin"
    world.bob.save()
    for address in ("/compare/query/", "/compare/"):
        assert browse("bob").get(f"{address}?q=rollback&a=run:{run.pk}").status_code == 404
        assert browse("alice").get(f"{address}?q=rollback&a=run:no-id").status_code == 404


def test_a_case_of_another_user_is_compared_with_their_access(browse, start, questions, world):
    save_case(questions, "codeword", actor=world.alice, facts=CaseFacts(user=world.charlie))
    runs = [start(), start("helix")]
    links = comparison._Links.of(runs, world.principal("alice"))
    assert links.between(0, 1, "codeword").endswith("&as=charlie")
    assert "as=" not in links.between(0, 1, ROLLBACK)
    shown = browse("alice").get(f"/compare/query/?{links.between(0, 1, 'codeword')}")
    assert (len(shown.context["compared"]["left"].hits), shown.context["principal"].user) == (0, world.charlie)


def test_a_baseline_among_the_others_is_compared_once(browse, start):
    first, second = start(), start()
    shown = browse("alice").get(f"/runs/compare/?a={first.pk}&b={first.pk}&b={second.pk}")
    assert [it["run"].pk for it in shown.context["runs"]] == [first.pk, second.pk]
