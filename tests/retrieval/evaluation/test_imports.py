import json

import pytest

from corecube.access import Principal, scope_for
from corecube.errors import InvalidRequestError, UnknownPrincipalError
from retrieval.evaluation.imports import Imported, Line, import_lines, read_lines
from retrieval.evaluation.qrels import csv_of
from retrieval.evaluation.question_sets import save_case, set_named
from retrieval.models import Chunk, Document, Judgment

ROLLBACK, QUEUE = "how to roll back staging", "how long does the queue drain"


@pytest.fixture
def questions(world):
    return set_named("Release questions", actor=world.alice)


def read(questions, *texts):
    return [(it.query, it.document, it.grade) for it in read_lines(texts, questions)]


BOTH = [(ROLLBACK, "rollback", 2), (QUEUE, "queues", 1)]
TOPICS = f"""
<top>
<num> Number: 301
<title> {ROLLBACK}
<desc> Description: not read
</top>
<top>
<num>302</num>
<title>{QUEUE}</title>
</top>
"""
QRELS = "301 0 rollback 2\n302 Q0 queues 1\n"
BEIR = "\n".join(
    json.dumps({"_id": key, "text": text, "metadata": {}}) for key, text in (("a", ROLLBACK), ("b", QUEUE))
)
RATED = [{"docId": "rollback", "rating": "2.000"}], [{"docId": "queues", "rating": "1.000"}]


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param((TOPICS, QRELS), id="TREC topics and qrels"),
        pytest.param((QRELS, f"301\t{ROLLBACK}\n302\t{QUEUE}\n303\tunjudged"), id="TSV topics behind their qrels"),
        pytest.param((BEIR, "query-id\tcorpus-id\tscore\na\trollback\t2\nb\tqueues\t1\n"), id="BEIR"),
        pytest.param((f"query,docid,rating\n{ROLLBACK},rollback,2\n{QUEUE},queues,1\n",), id="Quepid's CSV"),
        pytest.param(
            (f"Team Name,Query Text,Doc ID,Doc Position,Rating\nT,{ROLLBACK},rollback,1,2\nT,{QUEUE},queues,2,1\n",),
            id="Quepid's detailed CSV",
        ),
        pytest.param(
            (
                json.dumps(
                    {
                        "case_name": "C",
                        "queries": [
                            {"query_text": ROLLBACK, "ratings": [{"doc_id": "rollback", "rating": 2}]},
                            {"query_text": QUEUE, "ratings": {"queues": 1}},
                        ],
                    }
                ),
            ),
            id="Quepid's JSON",
        ),
        pytest.param(
            (
                json.dumps(
                    {
                        "name": "list",
                        "judgmentRatings": [
                            {"query": ROLLBACK, "ratings": RATED[0]},
                            {"query": QUEUE, "ratings": RATED[1]},
                        ],
                    }
                ),
            ),
            id="OpenSearch's judgments",
        ),
        pytest.param(
            (
                json.dumps(
                    {
                        "hits": {
                            "hits": [
                                {
                                    "_source": {
                                        "judgmentRatings": [
                                            {"query": ROLLBACK, "ratings": RATED[0]},
                                            {"query": QUEUE, "ratings": RATED[1]},
                                        ]
                                    }
                                }
                            ]
                        }
                    }
                ),
            ),
            id="OpenSearch's answer with judgments",
        ),
    ],
)
def test_each_format_has_the_same_questions_and_grades(questions, texts):
    assert read(questions, *texts) == BOTH


@pytest.mark.parametrize(
    "text",
    [
        f"{ROLLBACK}\n\n{QUEUE}\n",
        f"query\n{ROLLBACK}\n{QUEUE}\n",
        f"1\t{ROLLBACK}\n2\t{QUEUE}\n",
        json.dumps({"name": "set", "querySetQueries": [{"queryText": ROLLBACK}, {"queryText": QUEUE}]}),
        f'{{"queryText": "{ROLLBACK}"}}\n{{"queryText": "{QUEUE}", "referenceAnswer": "four minutes"}}\n',
        json.dumps([{"question": ROLLBACK}, {"question": QUEUE}]),
    ],
)
def test_questions_without_grades(questions, text):
    assert read(questions, text) == [(ROLLBACK, "", 0), (QUEUE, "", 0)]


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ((0, 5, 10), (0, 2, 3)),
        ((-2, 0, 1), (0, 0, 3)),
        (("0.0", "0.2", "1.0"), (0, 1, 3)),
        (("-0.5", "0"), (0, 0)),
        ((3, 1, 2), (3, 1, 2)),
    ],
)
def test_grades_of_another_range_are_scaled(questions, written, stored):
    rows = "".join(f"q,doc{place},{grade}\n" for place, grade in enumerate(written))
    assert [it.grade for it in read_lines([f"query,docid,rating\n{rows}"], questions)] == list(stored)


def test_a_document_is_named_by_its_file_and_each_passage_gets_the_grade(questions, world):
    done = import_lines(
        [Line(ROLLBACK, document="rollback", grade=3), Line(ROLLBACK, document="queues.txt", grade=1)],
        questions,
        actor=world.bob,
        scope=scope_for(world.principal("bob")),
    )
    passages = Chunk.objects.filter(document__external_id="rollback.md").values_list("content_hash", flat=True)
    graded = Judgment.objects.filter(document__external_id="rollback.md").values_list("content_hash", "grade", "by")
    assert sorted(graded) == sorted((it, 3, world.bob.pk) for it in passages)
    assert done == Imported(cases=1, judgments=len(passages) + 1, skipped=0)


def test_documents_outside_the_scope_are_skipped_by_any_name(questions, world):
    costs = Document.objects.get(external_id="rollback-costs.md")
    names = (str(costs.pk), costs.external_id, "rollback-costs")
    lines = [Line(ROLLBACK, document=name, grade=3) for name in names]
    done = import_lines(lines, questions, actor=world.bob, scope=scope_for(Principal(world.bob)))
    assert (done.judgments, done.skipped, done.missing) == (0, len(names), names)
    assert import_lines(lines, questions, actor=world.alice, scope=scope_for(Principal(world.alice))).skipped == 0


@pytest.mark.parametrize("name", ["notes.md", "notes", "file:///copies/notes.md"])
def test_a_name_stands_for_all_copies(questions, world, name):
    for connection in (world.runbooks, world.vault, world.ledger):
        Document.objects.filter(connection=connection).update(external_id="one.md")
        copy = Document.objects.filter(connection=connection).first()
        Document.objects.filter(pk=copy.pk).update(external_id="notes.md", uri="file:///copies/notes.md")
    scope = scope_for(Principal(world.alice))
    import_lines([Line(ROLLBACK, document=name, grade=2)], questions, actor=world.alice, scope=scope)
    graded = set(Judgment.objects.filter(grade=2).values_list("document__connection__slug", flat=True))
    assert graded == {it.connection.slug for it in scope.included}


def test_a_later_line_counts(questions, world):
    where = Chunk.objects.get(text__contains="deployctl")
    lines = ["query,document,passage,grade", *(f"Q,{where.document_id},{where.content_hash},{it}" for it in (1, 2))]
    scope = scope_for(Principal(world.bob))
    done = import_lines(read_lines(["\n".join(lines)], questions), questions, actor=world.bob, scope=scope)
    assert (done.cases, done.judgments) == (1, 1)
    assert Judgment.objects.get(by=world.bob).grade == 2


def test_an_unknown_user_leaves_everything_as_it_was(questions, world):
    lines = read_lines(["query,user\none,bob\ntwo,nobody\n"], questions)
    with pytest.raises(UnknownPrincipalError):
        import_lines(lines, questions, actor=world.alice, scope=scope_for(Principal(world.alice)))
    assert questions.cases.count() == 0


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ([""], "no questions"),
        (["query,grade\n,3"], "Line 2 has no query"),
        (["query,document,grade\nq,d,good"], "Line 2: the grade"),
        (["query,document,grade\nq,d,nan"], "Line 2: the grade"),
        (["query,document,grade\nq,d,"], "Line 2: the grade"),
        (["query,tags\nq," + "x" * 41], "at most 10 tags"),
        (["301 0 document 3"], "the question '301'"),
        (['{"queries": [{"notes": "x"}]}'], "without a query"),
        (['{"query": "q", "ratings": [{"rating": 3}]}'], "without a document"),
        (["{broken"], "neither JSON"),
        (["[1, 2]"], "holds no questions"),
        (["[" * 100_000], "JSON"),
        (["query\n" + "q\n" * 20_001], "20,000 lines"),
        (["q" * 1_000_001, "q" * 1_000_001], "2,000,000 characters"),
    ],
)
def test_what_is_no_import_is_refused_with_its_reason(questions, texts, said):
    with pytest.raises(InvalidRequestError, match=said):
        read_lines(texts, questions)


def test_grades_may_belong_to_cases_of_the_set(questions, world):
    case, _ = save_case(questions, ROLLBACK, actor=world.alice)
    assert read(questions, f"{case.pk} 0 rollback 3") == [(ROLLBACK, "rollback", 3)]


SHARED = {
    "id": "h001",
    "question": ROLLBACK,
    "kind": "procedure",
    "collection": "handbook",
    "documents": ["rollback.md"],
    "answers": [["deployctl", "undo"], ["staging"]],
    "evidence": "Run deployctl rollback.",
}


def test_expected_answers_are_imported_from_json_lines(questions, world):
    near = SHARED | {"id": "h002", "question": QUEUE, "kind": "unanswerable_near", "answers": []}
    text = "\n".join(map(json.dumps, (SHARED, near)))
    scope = scope_for(Principal(world.alice))
    assert import_lines(read_lines([text], questions), questions, actor=world.alice, scope=scope).cases == 2
    first, second = questions.cases.get(query=ROLLBACK), questions.cases.get(query=QUEUE)
    assert (first.is_answerable, first.answers) == (True, [["deployctl", "undo"], ["staging"]])
    assert first.tags == ["procedure", "handbook"]
    assert (second.is_answerable, second.answers) == (False, [])


def test_expected_answers_are_imported_for_cases_that_exist_and_come_back_from_the_export(questions, world):
    alice, scope = world.alice, scope_for(Principal(world.alice))
    save_case(questions, ROLLBACK, actor=alice)
    written = f"query,answer\n{ROLLBACK},deployctl | undo; staging\n"
    assert import_lines(read_lines([written], questions), questions, actor=alice, scope=scope).cases == 0
    expected = [["deployctl", "undo"], ["staging"]]
    assert questions.cases.get().answers == expected
    exported = "".join(csv_of(questions, viewer=alice, scope=scope))
    other = set_named("Copied", actor=alice)
    import_lines(read_lines([exported], other), other, actor=alice, scope=scope)
    assert other.cases.get().answers == expected


@pytest.mark.parametrize("answers", ["text", [["a"], "b"], [[1]], {"a": 1}, [["x" * 300]]])
def test_malformed_expected_answers_are_refused(questions, answers):
    with pytest.raises(InvalidRequestError, match="answer"):
        read_lines([json.dumps({"question": ROLLBACK, "answers": answers})], questions)
