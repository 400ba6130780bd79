import json
from dataclasses import replace

import pytest
from django.core.management import CommandError, call_command

from corecube.errors import NotPermittedError
from corecube.models import Connection
from retrieval.engine.types import ScoreType
from retrieval.errors import SearchTimeoutError
from retrieval.evaluation import runner, side_by_side
from retrieval.evaluation.corpus import document_names, ingested_folder
from retrieval.evaluation.runner import measured, ordering
from retrieval.evaluation.side_by_side import known_items
from retrieval.presets.catalog import PRESETS
from retrieval.search.prepare import kept_relevance
from tests.fake_llm import FakeLLM
from tests.retrieval.conftest import hit
from tests.retrieval.search.test_relevance import judging, stored

pytestmark = pytest.mark.usefixtures("unhurried")

#: Long enough for a chunk of its own.
CLOTH, GLOVES, DIAL, SEAL, OIL = (
    " ".join(f"{word} {number}." for number in range(150)) for word in ("cloth", "glove", "dial", "seal", "oil")
)
PAGES = {
    "press.md": f"# Printing press\n\n## Cleaning the rollers\n\n{CLOTH}\n\n## Safety\n\n{GLOVES}\n",
    "oven.md": f"# Oven\n\n## Lighting the burner\n\n{DIAL}\n\n## Wear and tear\n\n{SEAL}\n",
    "lathe.md": f"# Lathe\n\n## Wear and tear\n\n{OIL}\n",
}


@pytest.fixture
def judged(tmp_path):
    """Two collections of two documents and one question each."""
    root = tmp_path / "judged"
    for name, word in (("first", "alpha"), ("second", "gamma")):
        folder = root / name
        folder.mkdir(parents=True)
        rows = [{"_id": it, "title": "", "text": f"{it} {it} {it}"} for it in (word, "other")]
        (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": word}) + "\n")
        (folder / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\nq\t{word}\t1\n")
    return root


@pytest.fixture
def fake():
    kept_relevance.cache_clear()
    with FakeLLM() as running:
        running.says(judging)
        yield running


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    for name, text in PAGES.items():
        (folder / name).write_text(text)
    return folder


def test_every_preset_is_measured_on_every_collection(db, judged, files, capsys):
    call_command("evaluate", "--all", str(judged), "--files", str(files), "--json")
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = [(row["dataset"], row["preset"]) for row in rows]
    assert found == [(name, preset) for name in ("first", "second", "raw files") for preset in PRESETS]
    for row in rows:
        assert row["latency_ms"]["total"]["p95"] > 0
        assert row["packed_tokens"] > 0
    # The only document with the word is first, whatever searches.
    assert {row["measures"]["nDCG@10"] for row in rows if row["dataset"] == "first"} == {1.0}


def test_the_table_has_no_empty_cell(db, judged, capsys):
    call_command("evaluate", "--all", str(judged))
    head, rule, *rows = capsys.readouterr().out.strip().splitlines()
    columns = head.count("|")
    assert len(rows) == 2 * len(PRESETS)
    for row in (rule, *rows):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert row.count("|") == columns
        assert all(cells)


def test_of_many_questions_the_same_ones_are_drawn_each_time(db, judged, monkeypatch):
    lines = [json.dumps({"_id": f"q{number}", "text": f"question {number}"}) for number in range(8)]
    (judged / "first" / "queries.jsonl").write_text("\n".join(lines))
    document = json.loads((judged / "first" / "corpus.jsonl").read_text().splitlines()[0])["_id"]
    qrels = [f"q{number}\t{document}\t1" for number in range(8)]
    (judged / "first" / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *qrels]))
    monkeypatch.setattr(side_by_side, "_MAX_QUESTIONS", 5)
    drawn, again = (side_by_side.collections(judged, [], progress=lambda _: None)[0].questions for _ in range(2))
    assert drawn == again
    assert len({query.id for query in drawn.queries}) == 5
    assert drawn.qrels.keys() == {query.id for query in drawn.queries}


def test_a_search_whose_time_is_up_found_nothing_and_counts(db, judged, capsys, monkeypatch):
    def late(request, **more):
        raise SearchTimeoutError

    monkeypatch.setattr(runner, "search", late)
    call_command("evaluate", str(judged / "first"), "--json")
    row = json.loads(capsys.readouterr().out)
    assert (row["degraded"], row["measures"]["nDCG@10"], row["packed_tokens"]) == (row["queries"], 0, 0)
    assert row["latency_ms"].keys() == {"total"}


def test_the_table_says_what_ordered_the_hits(db, judged, capsys):
    call_command("evaluate", "--all", str(judged))
    head, _, *rows = (
        [cell.strip() for cell in row.strip("|").split("|")] for row in capsys.readouterr().out.split("\n") if row
    )
    place = head.index("ordered by")
    shipped = {"corecube": "blend", "helix": "signals", "consolidated": "blend", "contextpack": "blend"}
    assert {row[2].strip("`"): row[place] for row in rows}.items() >= shipped.items()


def test_no_language_model_is_asked_without_being_told(db, judged, fake, capsys):
    stored("m", fake, is_default=True)
    call_command("evaluate", "--all", str(judged))
    assert fake.requests == []
    assert "model" not in capsys.readouterr().out


def test_a_language_model_that_judges_is_asked_each_time_it_is_measured(db, judged, fake, capsys):
    stored("m", fake, is_default=True)
    call_command("evaluate", str(judged / "first"), "--preset", "contextpack", "--judge", "--json")
    # Once to warm up, and once more.
    assert len(fake.requests) == 2
    assert json.loads(capsys.readouterr().out)["ordered_by"] == {"model": 1}


def test_what_ordered_a_hit_is_told_in_a_word():
    def mapped(**signals):
        return replace(hit(1), score_type=ScoreType.MAPPED, signals=signals)

    kinds = [ScoreType.RUBRIC, ScoreType.LOGIT, ScoreType.RELEVANCE, ScoreType.BLEND, ScoreType.SIGNALS]
    words = [ordering(replace(hit(1), score_type=kind)) for kind in kinds]
    assert words == ["model", "reranker", "reranker", "blend", "signals"]
    assert [ordering(mapped(blend=0.4)), ordering(mapped(blend=0.4, rerank=2.0))] == ["blend", "reranker"]


def test_files_without_headings_are_refused_before_anything_is_measured(db, judged, tmp_path, capsys):
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "a.txt").write_text("plain words only")
    with pytest.raises(CommandError, match="has a unique heading"):
        call_command("evaluate", "--all", str(judged), "--files", str(plain))
    assert capsys.readouterr().out == ""


def test_rows_are_printed_as_they_come(db, judged, capsys, monkeypatch):
    def fails(questions, *given, preset, **more):
        if questions.name == "second":
            raise NotPermittedError
        return measured(questions, *given, preset=preset, **more)

    monkeypatch.setattr(side_by_side, "measured", fails)
    with pytest.raises(CommandError):
        call_command("evaluate", "--all", str(judged))
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(PRESETS)


def test_headings_of_one_document_ask_for_it(db, files):
    connection = ingested_folder(files, lambda _: None)
    items = known_items([connection], name="raw files", limit=10)
    asked = {query.text: items.qrels[query.id] for query in items.queries}
    # "Safety" is a label, and "Wear and tear" stands in two documents.
    assert asked == {"Cleaning the rollers": {"press.md": 1}, "Lighting the burner": {"oven.md": 1}}


def test_the_same_questions_are_drawn_in_every_run(db, files):
    connection = ingested_folder(files, lambda _: None)
    drawn = [known_items([connection], name="raw files", limit=2) for _ in range(2)]
    assert len(drawn[0].queries) == 2
    assert drawn[0] == drawn[1]


def test_documents_of_one_name_in_two_folders_are_two(db, files, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "press.md").write_text("# Cider press\n\nSqueeze slowly.\n")
    connections = [ingested_folder(folder, lambda _: None) for folder in (files, other)]
    names = document_names(connections).values()
    assert len(set(names)) == len(PAGES) + 1


def test_a_directory_without_collections_is_refused(db, tmp_path):
    with pytest.raises(CommandError, match="no folder in the BEIR layout"):
        call_command("evaluate", "--all", str(tmp_path))
    assert not Connection.objects.exists()


def test_files_are_for_all_alone(db, judged, files):
    with pytest.raises(CommandError, match="--files needs --all"):
        call_command("evaluate", str(judged / "first"), "--files", str(files))
