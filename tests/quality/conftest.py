"""The sample company in a real store, embedded by the real model."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.test import override_settings

from corecube.access import Principal, scope_for, user_named
from corecube.models import Connection, User
from corecube.people import ADMINISTRATORS
from explorer.pages.explorer.examples import examples_for
from retrieval.answers.answering import run_cosines
from retrieval.answers.extractive import extract_answer
from retrieval.answers.rewrite import Rewriting, Said, stand_alone
from retrieval.encoders import load_encoder
from retrieval.evaluation.corpus import encode_sentences
from retrieval.index import active
from retrieval.ingest.samples import Company, add_samples
from retrieval.llm.types import Task, Turn
from retrieval.models import Document
from retrieval.search import runtime
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.stored_vectors import StoredVectors
from tests.unhurried import MOMENT, without_deadlines, written_at_that_moment

_MODEL: Path = settings.CORECUBE_MODELS_DIR / settings.CORECUBE_MODEL
_MANIFEST = settings.CORECUBE_SAMPLES_DIR / "company.toml"


@dataclass(frozen=True)
class Asked:
    """One of the company's questions, asked by the one who may ask it."""

    question: dict
    #: Paths of the documents found, best first.
    documents: list
    #: The search as a page asks for it.
    outcome: SearchOutcome
    #: Numbers of the passages whose document is expected.
    answering: list
    #: The quotes.
    answer: str


@pytest.fixture(scope="session")
def real_encoder():
    if not (_MODEL / "manifest.json").is_file():
        pytest.skip(f"the model {_MODEL.name} is not here: run manage.py models fetch")
    return StoredVectors.of(load_encoder(_MODEL))


@pytest.fixture(scope="module")
def asked(django_db_setup, django_db_blocker, real_encoder, tmp_path_factory):
    """Every question of the company; its documents are embedded once for the module and rolled back at its end."""
    quick = override_settings(
        CORECUBE_LEG_THREADS=0,
        CORECUBE_SAMPLES_DIR=written_at_that_moment(settings.CORECUBE_SAMPLES_DIR, tmp_path_factory.mktemp("q") / "s"),
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    )
    with django_db_blocker.unblock(), quick, pytest.MonkeyPatch.context() as patch, transaction.atomic():
        assert connection.settings_dict["NAME"].startswith("test_"), "the module's tests need the mark django_db"
        patch.setattr(active, "encoder", lambda *_: real_encoder)
        _keep_vacuum_out()
        add_samples(Company.read(settings.CORECUBE_SAMPLES_DIR))
        encode_sentences(Connection.objects.all())
        without_deadlines()
        yield [_ask(question) for question in tomllib.loads(_MANIFEST.read_text())["question"]]
        transaction.set_rollback(True)


def _keep_vacuum_out():
    """Lock the tables against autovacuum: it would count none of the open transaction's rows, and the planner would
    take them for few.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "LOCK TABLE retrieval_document, retrieval_chunk, retrieval_embedding, retrieval_termfrequency"
            " IN SHARE UPDATE EXCLUSIVE MODE"
        )


#: A word of questions of the company, and how it is typed.
_MISSPELLED = {
    "leave-days": ("annual", "anual"),
    "hotel-limit": ("hotel", "hotle"),
    "tunnel-2": ("tunnel", "tunel"),
    "sign-limit": ("amount", "ammount"),
    "budget-wages": ("increase", "increse"),
    "late-fee": ("arrival", "arival"),
}


@pytest.fixture(scope="module")
def misspelled(asked):
    """Questions of the company with a misspelled word, with the word as it is meant."""
    return [
        (meant, _ask({**it.question, "text": it.question["text"].replace(meant, typed)}))
        for it in asked
        if it.question["id"] in _MISSPELLED
        for meant, typed in [_MISSPELLED[it.question["id"]]]
    ]


@dataclass(frozen=True)
class FollowUp:
    """A follow-up question, and what was found for it as it was asked and made to stand alone."""

    rewriting: Rewriting
    expected: str
    alone: list
    rewritten: list
    requirements: list  #: Of the answer; empty if no answer is expected.
    before: str  #: The answer to the question before it, and its own.
    answer: str


@dataclass(frozen=True)
class Shown:
    """An example question as it is shown to somebody, and the answer."""

    username: str
    text: str
    requirements: list  #: None where this user cannot be answered.
    answer: str

    @property
    def first_quote(self):
        return re.split(r"\[\d+\]", self.answer, maxsplit=1)[0]


@pytest.fixture(scope="module")
def shown(asked):
    """Every example of the start pages and of the README, for each user and an admin."""
    User.objects.create_user("an-admin", is_staff=True).groups.add(Group.objects.get(name=ADMINISTRATORS))
    return [
        _shown(username, text, [it.question for it in asked])
        for username in ("jun", "yusuf", "wilhelmina", "an-admin")
        for text in (*_examples(username), *_readme_questions())
    ]


def _examples(username):
    return [it.text for it in examples_for(scope_for(Principal(user_named(username))), username)]


def _readme_questions():
    return re.findall(r'"role": "user", "content": "([^"]+)"', (settings.BASE_DIR / "README.md").read_text())


def _shown(username, text, questions):
    own = sorted((it for it in questions if it["text"] == text), key=lambda it: it["user"] != username)
    _, answer, _ = _answered(Rewriting(text, text), [], username)
    return Shown(username, text, own[0]["answers"] if own[0].get("answerable", True) else None, answer)


@pytest.fixture(scope="module")
def follow_ups(asked):
    """The last question of every conversation."""
    conversations = tomllib.loads((Path(__file__).parent / "conversations.toml").read_text())["conversation"]
    return [_follow_up(it) for it in conversations]


def _follow_up(conversation):
    user, said, turns = conversation["user"], [], []
    for question in conversation["turns"]:
        rewriting = stand_alone(question, said)
        outcome, answer, titles = _answered(rewriting, turns, user)
        said.append(Said(question, titles))
        turns.append(Turn(question, answer))
    rewritten = _documents(outcome)
    alone = _documents(_found(rewriting.asked, Principal(user_named(user)))) if rewriting.is_rewritten else rewritten
    requirements = conversation.get("answers", [])
    return FollowUp(rewriting, conversation["expected"], alone, rewritten, requirements, turns[-2].answer, answer)


def _answered(rewriting, turns, user):
    """Return the search for a question of a conversation, the answer to it, and the titles of what it cites."""
    outcome = _found(rewriting.searched, Principal(user_named(user)))
    answer = _answer_to(outcome, rewriting.asked, history=tuple(turns), is_follow_up=rewriting.is_rewritten)
    titles = [outcome.passages[citation.number - 1].hit.chunk.title for citation in answer.citations]
    return outcome, answer.text, tuple(dict.fromkeys(titles))


def _answer_to(outcome, question, **more):
    """Return the quotes that answer a question from a search."""
    state = outcome.state
    task = Task(
        question=question,
        passages=outcome.passages,
        terms=state.terms,
        answerability=state.answerability,
        trust=state.scope.trust,
        cosines=run_cosines(outcome, runtime.resources()),
        **more,
    )
    return extract_answer(task)


def _found(text, principal, **more):
    outcome = search(SearchRequest(text=text, now=MOMENT, **more), principal=principal)
    assert outcome.state.degraded == ()
    return outcome


def _documents(outcome):
    return list(dict.fromkeys(_paths(outcome.hits)))


def _ask(question):
    principal = Principal(user_named(question["user"]))
    deep, outcome = _found(question["text"], principal, top_k=50), _found(question["text"], principal)
    wanted = {expected["path"] for expected in question.get("expected", [])}
    packed = _paths(passage.hit for passage in outcome.passages)
    return Asked(
        question,
        list(dict.fromkeys(_paths(deep.hits))),
        outcome,
        [passage.number for passage, path in zip(outcome.passages, packed, strict=True) if path in wanted],
        _answer_to(outcome, question["text"]).text,
    )


def _paths(hits):
    rows = Document.objects.select_related("connection").values_list("pk", "connection__config", "external_id")
    root = str(settings.CORECUBE_SAMPLES_DIR)
    path_of = {pk: f"{config['path']}/{name}".removeprefix(f"{root}/") for pk, config, name in rows}
    return [path_of[hit.chunk_id.document_id] for hit in hits]
