"""What the pages of `tests.browser.pages` look at: a world in which something has happened on each of them."""

from uuid import UUID

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from lxml import html

from corecube.access import scope_for
from corecube.models import ApiKey, Connection
from retrieval.admin.preset_versions import save_draft
from retrieval.answers.conversations.sharing import share
from retrieval.evaluation.experiments import ExperimentRequest, stop
from retrieval.evaluation.experiments import start as start_experiment
from retrieval.evaluation.gates import set_gate
from retrieval.evaluation.runs import RunRequest, run_now
from retrieval.evaluation.sweeps import SweepRequest, queue_sweep, run_waiting
from retrieval.ingest.sync import sync_connection
from retrieval.models import (
    Chunk,
    Conversation,
    Document,
    EmbeddingIndex,
    LanguageModel,
    Message,
    QuestionSet,
    QueuedSearch,
    SearchRecord,
    StartingPrompt,
)
from retrieval.presets.catalog import preset_named
from retrieval.ranking.measures import Objective
from retrieval.ranking.tuning import Range
from retrieval.records.judgments import PassageId, judge
from retrieval.search.section_sets import copy_section_set, fingerprint, save_section_set, section_set_named
from tests.browser.pages import Places
from tests.corecube.oauth.conftest import Agent
from tests.questions import tuning_questions
from tests.race import beside
from tests.section_edits import written_with


@pytest.fixture
def places(world):
    """Return what the pages look at, in a world in which something has happened on each of them."""
    (world.root / "runbooks" / "broken.pdf").write_bytes(b"no document")
    job = sync_connection(world.runbooks)
    save_draft(preset=preset_named("corecube"), values={"fusion.pool": 40}, note="smaller", actor=world.alice)
    record = _asked_and_judged(world)
    _compared(world)
    return Places(
        query="rollback+staging",
        nonsense="quokka+bandicoot",
        person="bob",
        without="without=runbooks",
        title="rolling",
        document=str(Document.objects.get(external_id="rollback.md").pk),
        hidden=str(Document.objects.get(external_id="breach.md").pk),
        record=str(record.pk),
        question_set="saved-questions",
        connection="runbooks",
        upload=_uploads(world).slug,
        job=str(job.pk),
        compartment="engineering",
        user=str(world.bob.pk),
        group=str(Group.objects.get().pk),
        index=str(_other_index().pk),
        key=str(ApiKey.issue(user=world.bob, name="nightly report")[0].pk),
        conversation=_chatted(world),
        link=_shared(world),
        run=_measured(world, "corecube"),
        other_run=_measured(world, "helix"),
        sweep=_swept(world),
        prompt=str(
            StartingPrompt.objects.create(title="Roll back", text="How do I roll back?", sources=["runbooks"]).pk
        ),
        authorization=_connected(world).partition("?")[2],
        language_model=_language_model().slug,
        section_set=_section_sets(world),
        queued=str(_queued(world).pk),
    )


def _saved():
    return QuestionSet.objects.get(slug="saved-questions")


def _compared(world):
    """End an experiment, so that no search of another page is a part of it."""
    alice = world.principal("alice")
    sides = {"first": ("corecube", 0), "second": ("helix", 0)}
    stop(
        start_experiment(ExperimentRequest(name="Agents", share=5, max_questions=9, **sides), actor=alice), actor=alice
    )


def _measured(world, preset):
    """Return the id of a run with answers."""
    asked = RunRequest(preset, has_answers=True)
    return str(beside(lambda: run_now(_saved(), asked, principal=world.principal("alice"))).pk)


def _swept(world):
    """Guard promotions by the saved questions, and try three weights on another set; return the sweep."""
    alice = world.principal("alice")
    set_gate(_saved(), objective=Objective(), max_loss=0.01, actor=alice)
    tried = [Range("blend.dense", (0.2, 0.4)), Range("blend.fulltext", (0.0, 0.6))]
    sweep = queue_sweep(tuning_questions(world), SweepRequest(preset="corecube", ranges=tried), principal=alice)
    run_waiting()
    return str(sweep.pk)


def _connected(world):
    """Connect an application for Alice, and return the address with which it asks again."""
    agent = Agent(Client())
    agent.register(client_name="Desk assistant")
    agent.tokens(world.alice)
    return agent.address(resource=None)


def _uploads(world):
    """Add a connection that waits for files."""
    return Connection.objects.create(
        slug="files", name="Files", kind="upload", compartment=world.runbooks.compartment, sensitivity=1
    )


def _language_model():
    """Describe a language model that nobody asks."""
    return LanguageModel.objects.create(
        slug="local-model", name="Local model", base_url="http://localhost:11434/v1", model="llama", is_enabled=False
    )


def _section_sets(world):
    """Edit a section of a shipped set, so that it can be reset, and keep a copy; return the copy's name."""
    report = section_set_named("report")
    written = written_with(report, "history", {"keep": 9})
    save_section_set(written, actor=world.alice, replaces=fingerprint(report))
    return copy_section_set("report", new_name="audit_report", title="Audit report", actor=world.alice).name


def _queued(world):
    """Keep a search in other words that came to nothing."""
    return QueuedSearch.objects.create(
        user=world.alice,
        text="rollback",
        status=QueuedSearch.Status.FAILED,
        code="timeout",
        message="It took too long.",
    )


def _other_index():
    """Keep an index beside the one that is searched."""
    index = EmbeddingIndex.objects.get()
    index.pk, index.model, index.status = None, "another-model", EmbeddingIndex.Status.BUILDING
    index.save()
    return index


def _asked_and_judged(world):
    """Search as Alice and as Bob, without a good answer for him, judge differently what Alice found, and save a case.

    Return the log's record of hers.
    """
    client = Client()
    for person in (world.bob, world.alice):
        client.force_login(person)
        page = html.fromstring(client.get("/", {"q": "rollback staging"}).content)
    record = SearchRecord.objects.get(user=world.alice)
    grade = page.xpath("string(//*[@id='judge-1-2']/@value)")
    client.post("/judge/", {"trace": record.pk, "q": record.query, "grade": grade})
    document, _, text = grade.partition("=")[0].partition(":")
    judge(record.query, PassageId(UUID(document), text), grade=0, by=world.bob, scope=scope_for(world.principal("bob")))
    SearchRecord.objects.filter(user=world.bob).update(verdict="partial")
    client.post("/judge/case/", {"trace": record.pk, "q": record.query, "name": "Saved questions"})
    return record


def _shared(world):
    """Share Alice's conversation, and return its link."""
    conversation = Conversation.objects.get(user=world.alice)
    share(conversation)
    return str(conversation.shared_as)


def _chatted(world):
    """Return a conversation of Alice's, its answer put in its place: no event loop writes one beside the browser's."""
    client = Client()
    client.force_login(world.alice)
    client.post("/chat/", {"q": "How do I roll back staging?"}, headers={"HX-Request": "true"})
    chunk = Chunk.objects.get(document__external_id="rollback.md", ordinal=0)
    passage = {"number": 1, "document": str(chunk.document_id), "ordinal": 0, "content_hash": chunk.content_hash}
    Message.objects.filter(role=Message.Role.ASSISTANT).update(
        state=Message.State.DONE,
        text="Run **deployctl rollback** [1].\n\n- Mars is told [1].",
        passages=[{**passage, "connection": chunk.connection_id, "score": 0.9, "cited": True}],
        unsupported=[{"start": 35, "end": 52, "reason": "name", "explanation": "A name of it stands nowhere."}],
    )
    return str(Conversation.objects.get().pk)
