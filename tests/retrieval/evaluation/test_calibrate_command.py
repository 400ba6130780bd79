"""`manage.py calibrate` on judged questions."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from corecube.models import AuditEvent
from retrieval.evaluation.calibration_fit import JudgedQuestion, read_questions
from retrieval.models import Calibration, SearchRecord

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("unhurried")]
#: Bob's documents answer these, and none of those.
KNOWN = ("rollback staging database", "drain the queue", "error Q-4711 worker stuck", "release captain production")
UNKNOWN = ("zanzibar weather in winter", "parking fees tomorrow", "pension fund address", "canteen opening hours")


def lines(path, count, **more):
    """Write `count` questions of each kind, no two alike."""
    rows = [
        {"question": f"{words[n % len(words)]} {n}", "answerable": known, **more}
        for known, words in ((True, KNOWN), (False, UNKNOWN))
        for n in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def calibrate(*arguments):
    out = StringIO()
    call_command("calibrate", *map(str, arguments), stdout=out, stderr=StringIO())
    return out.getvalue()


def test_a_fit_is_stored_shown_and_reset_and_its_questions_leave_no_trace(world, tmp_path):
    told = json.loads(calibrate(lines(tmp_path / "ours.jsonl", 30), "--as", "bob", "--json"))
    assert (told["answerable"], told["not_answerable"], told["left_out"]) == (30, 30, 0)
    assert not SearchRecord.objects.exists()
    assert told["auroc"] > 0.9
    assert told["ece"] < told["shipped"]["ece"]
    row = Calibration.objects.get(is_active=True)
    assert (row.preset, row.source, row.created_by.username) == ("corecube", "ours.jsonl", "bob")
    assert AuditEvent.objects.filter(action="calibration.stored", subject="corecube").exists()
    assert "ours.jsonl" in calibrate("--show")
    assert "The shipped model is in use again." in calibrate("--reset")
    assert "No calibration" in calibrate("--show")
    assert "There was no calibration." in calibrate("--reset")


def test_a_dry_run_stores_nothing(world, tmp_path):
    assert "Nothing was stored." in calibrate(lines(tmp_path / "ours.jsonl", 30), "--as", "bob", "--dry-run")
    assert not Calibration.objects.exists()


def test_each_question_is_asked_as_its_own_user(world, tmp_path):
    # Charlie sees nothing, so his questions find nothing and are left out.
    path = lines(tmp_path / "ours.jsonl", 30, user="charlie")
    with pytest.raises(CommandError, match="there are 0 answerable and 0 not answerable"):
        calibrate(path)


def test_too_few_questions_are_refused(world, tmp_path):
    with pytest.raises(CommandError, match=r"30 questions of each kind .* there are 29 answerable and 29 not"):
        calibrate(lines(tmp_path / "few.jsonl", 29), "--as", "bob")
    assert not Calibration.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Name a file of judged questions"),
        (("nowhere.jsonl",), "There is no file or folder"),
        (("--preset", "nope", "--show"), "Unknown preset"),
    ],
)
def test_what_is_missing_is_named(db, arguments, message):
    with pytest.raises(CommandError, match=message):
        calibrate(*arguments)


def test_a_question_that_nobody_asks_is_refused(world, tmp_path):
    with pytest.raises(CommandError, match="needs --as USER"):
        calibrate(lines(tmp_path / "ours.jsonl", 1))
    with pytest.raises(CommandError, match="No user with that name"):
        calibrate(lines(tmp_path / "ours.jsonl", 1), "--as", "nobody")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: expected an object"),
        ("[]", "line 2: expected an object"),
        ('{"question": "x"}', "line 2: expected an object"),
        ('{"question": " ", "answerable": true}', "line 2: question must be a text"),
        ('{"question": "\\u0000", "answerable": true}', "line 2: question must be a text"),
        ("[" * 100_000, "line 2: expected an object"),
        ("\udcff", "line 2: expected an object"),
        ('{"question": "x", "answerable": 1}', "line 2: answerable must be true or false"),
        ('{"question": "x", "answerable": true, "user": 3}', "line 2: user must be a username"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, line, message):
    from corecube.errors import InvalidRequestError

    path = tmp_path / "ours.jsonl"
    path.write_bytes(f'{{"question": "x", "answerable": true}}\n{line}\n'.encode(errors="surrogateescape"))
    with pytest.raises(InvalidRequestError, match=message):
        read_questions(path)


def test_a_byte_order_mark_and_text_that_cannot_be_stored_are_taken(tmp_path):
    path = tmp_path / "ours.jsonl"
    path.write_text('\ufeff{"question": "what \\ud83d\\u0000?", "answerable": true, "user": "bob\\u0000"}\n')
    assert read_questions(path) == (JudgedQuestion("what ? ?", answerable=True, user="bob "),)


def test_a_judged_collection_gives_its_queries(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d", "text": "x"}\n')
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "1", "text": "a"}\n{"_id": "2", "text": "b"}\n{"_id": "3", "text": "c"}\n'
    )
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n1\td\t1\n2\td\t0\n")
    assert read_questions(tmp_path) == (
        JudgedQuestion("a", answerable=True),
        JudgedQuestion("b", answerable=False),
        JudgedQuestion("c", answerable=False),
    )
