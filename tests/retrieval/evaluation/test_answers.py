import json

import pytest
from django.core.management import CommandError, call_command

from corecube.errors import InvalidRequestError
from retrieval.answers.events import Outcome
from retrieval.engine.types import Verdict
from retrieval.evaluation.answers import MAX_CHARACTERS, Answered, AnswerQuestion, figures, is_right, load_questions

ROW = {
    "id": "q1",
    "question": "How long?",
    "kind": "fact",
    "collection": "notes",
    "answers": [["4 weeks", "four weeks"]],
}


def written(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def answered(outcome, *, verdict=Verdict.ANSWERABLE, right=False, requirements=(("4",),), kind="fact", seconds=0.1):
    question = AnswerQuestion("q", "How long?", kind, "notes", requirements)
    return Answered(question, "text", outcome, verdict, 0.5, right, seconds)


@pytest.mark.parametrize(
    ("answer", "requirements", "right"),
    [
        ("It is Four\n  weeks [1].", [["4 weeks", "four weeks"]], True),
        ("It is three weeks [1].", [["4 weeks", "four weeks"]], False),
        ("up to 20,000 euro, signed by Mars", [["20000 euro"], ["mars"]], True),
        ("up to 20,000 euro", [["20000 euro"], ["mars"]], False),
        ("> the first\n> second", [["first second"]], True),
        ("from 1,2345 on", [["12345"]], False),
        ("see \\[3] there", [["[3]"]], True),
        ("x" * MAX_CHARACTERS + " four weeks", [["four weeks"]], False),
        ("anything", [], False),
    ],
)
def test_an_answer_is_right_when_every_requirement_appears(answer, requirements, right):
    assert is_right(answer, tuple(map(tuple, requirements))) is right


@pytest.mark.parametrize(
    ("verdict", "outcome", "contradicts"),
    [
        (Verdict.ANSWERABLE, Outcome.ASSERTED, False),
        (Verdict.ANSWERABLE, Outcome.HEDGED, True),
        (Verdict.ANSWERABLE, Outcome.REFUSED, True),
        (Verdict.PARTIAL, Outcome.HEDGED, False),
        (Verdict.PARTIAL, Outcome.REFUSED, True),
        (Verdict.NOT_ANSWERABLE, Outcome.ASSERTED, True),
        (Verdict.NOT_ANSWERABLE, Outcome.HEDGED, False),
        (None, Outcome.ASSERTED, False),
    ],
)
def test_a_verdict_allows_some_outcomes(verdict, outcome, contradicts):
    assert answered(outcome, verdict=verdict).contradicts is contradicts


def test_the_measures_are_shares_of_their_questions():
    found = [
        answered(Outcome.ASSERTED, right=True, seconds=0.1),
        answered(Outcome.HEDGED, right=True, verdict=Verdict.PARTIAL, seconds=0.2),
        answered(Outcome.ASSERTED, kind="list", seconds=0.3),
        answered(Outcome.REFUSED, kind="list", seconds=0.4),
        answered(Outcome.REFUSED, verdict=Verdict.NOT_ANSWERABLE, requirements=(), kind="far", seconds=0.5),
        answered(Outcome.ASSERTED, requirements=(), kind="far", seconds=0.5),
    ]
    out = figures("helix", found)
    assert out["measures"] == {
        "answerable_right": 0.5,
        "answerable_hedged": 0.25,
        "answerable_refused": 0.25,
        "unanswerable_not_asserted": 0.5,
        "unanswerable_refused": 0.5,
        "contradictions": pytest.approx(1 / 6, abs=1e-4),
    }
    assert out["latency_ms"]["p50"] == pytest.approx(350)
    assert out["kinds"] == {
        "fact": {"questions": 2, "right": 2, "wrong": 0, "hedged": 1, "refused": 0},
        "list": {"questions": 2, "right": 0, "wrong": 1, "hedged": 0, "refused": 1},
        "far": {"questions": 2, "right": 1, "wrong": 1, "hedged": 0, "refused": 1},
    }
    assert out["collections"]["notes"]["questions"] == 6
    assert figures("helix", found[:1])["measures"]["unanswerable_refused"] is None


@pytest.mark.parametrize("text", ["[]", "{", '{"id": 1}', json.dumps({**ROW, "answers": 5})])
def test_a_malformed_file_is_named(tmp_path, text):
    path = tmp_path / "questions.jsonl"
    path.write_text(text)
    with pytest.raises(InvalidRequestError, match=r"questions\.jsonl"):
        load_questions(path)
    with pytest.raises(InvalidRequestError, match="no file"):
        load_questions(tmp_path / "missing.jsonl")


@pytest.fixture
def asked(tmp_path):
    notes = tmp_path / "corpora" / "notes"
    notes.mkdir(parents=True)
    (notes / "leave.md").write_text("# Leave\n\nParental leave lasts four weeks.\n")
    for name in ("queues", "oven", "lathe", "press"):
        (notes / f"{name}.md").write_text(f"# The {name}\n\nClean the {name} every evening, and note it in the book.\n")
    (tmp_path / "answers").mkdir()
    far = {"id": "q2", "question": "Who painted Guernica?", "kind": "far", "collection": "notes", "answers": []}
    first = {**ROW, "question": "parental leave lasts"}
    return written(tmp_path / "answers" / "questions.jsonl", first, far)


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("preset", ["corecube", "helix"])
def test_questions_are_answered_as_they_would_be_on_the_chat_page(db, asked, capsys, preset):
    call_command("evaluate", "--answers", str(asked), "--preset", preset, "--json")
    out = json.loads(capsys.readouterr().out)
    assert [(it["id"], it["right"], it["outcome"] == "refused") for it in out["answers"]] == [
        ("q1", True, False),
        ("q2", False, True),
    ]
    assert out["answers"][0]["answer"].startswith("Quoted from your documents:")
    assert out["measures"]["answerable_right"] == 1


def test_the_table_names_every_measure_kind_and_collection(db, asked, capsys):
    call_command("evaluate", "--answers", str(asked))
    out = capsys.readouterr().out
    assert all(name in out for name in ("answerable_right", "contradictions", "p95", "fact", "far", "notes"))


def test_the_sample_companys_questions_are_answered_for_their_askers(world, tmp_path, capsys):
    rows = ['user = "bob"\nid = "a"\nkind = "fact"\ntext = "Who approves a rollback of staging?"\nanswers = [["Mars"]]']
    path = tmp_path / "company.toml"
    path.write_text("".join(f"[[question]]\n{row}\n" for row in rows))
    call_command("evaluate", "--answers", str(path), "--json")
    assert [it["id"] for it in json.loads(capsys.readouterr().out)["answers"]] == ["a"]
    path.write_text(path.read_text().replace("bob", "nobody"))
    with pytest.raises(CommandError, match="No user"):
        call_command("evaluate", "--answers", str(path))


def test_a_collection_without_a_folder_is_named(db, tmp_path):
    path = written(tmp_path / "questions.jsonl", ROW)
    with pytest.raises(CommandError, match="--corpora"):
        call_command("evaluate", "--answers", str(path), "--corpora", str(tmp_path))
