"""A question set about the small world, judged by Alice."""

from corecube.access import scope_for
from retrieval.evaluation.question_sets import CaseFacts, save_case, set_named
from retrieval.models import Chunk
from retrieval.records.judgments import PassageId, judge

ROLLBACK = "Run deployctl rollback before touching the staging database"
TANGERINE = "tangerine"
FOOTBALL = "who won the football cup in brazil"
#: A query, a word of the passage that is judged, and its grade.
JUDGED = ((ROLLBACK, "deployctl", 3), (ROLLBACK, "zanzibar", 1), (TANGERINE, TANGERINE, 2))


def release_questions(world):
    """Return the set: two answerable cases with judgments, and one that no document answers."""
    made = set_named("Release questions", actor=world.alice)
    for query in (ROLLBACK, TANGERINE):
        save_case(made, query, actor=world.alice)
    save_case(made, FOOTBALL, actor=world.alice, facts=CaseFacts(is_answerable=False))
    for query, word, grade in JUDGED:
        judge_passage(world, query, word, grade)
    return made


def judge_passage(world, query, word, grade):
    """Let Alice grade the passage with a word for a query."""
    chunk = Chunk.objects.get(text__contains=word)
    where = PassageId(chunk.document_id, chunk.content_hash)
    judge(query, where, grade=grade, by=world.alice, scope=scope_for(world.principal("alice")))


#: Queries of the tuning half, and of the other one, each with a word of the passage that answers it.
TUNING = (
    (ROLLBACK, "deployctl"),
    ("zanzibar", "zanzibar"),
    ("error Q-4711", "Q-4711"),
    ("stolen passphrase", "zanzibar"),
)
HELD_OUT = ((TANGERINE, TANGERINE), ("drain the queue", "captain"), ("codeword", TANGERINE), ("crowns", TANGERINE))


def tuning_questions(world):
    """Return a set with four judged queries in either half."""
    made = set_named("Tuning questions", actor=world.alice)
    for query, word in (*TUNING, *HELD_OUT):
        save_case(made, query, actor=world.alice)
        judge_passage(world, query, word, 3)
    return made
