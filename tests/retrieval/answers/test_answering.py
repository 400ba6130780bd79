"""From a finished search to an answer: who writes it, what happens meanwhile, and how it ends."""

import asyncio
import uuid
from contextlib import aclosing
from dataclasses import replace
from types import SimpleNamespace

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection

from corecube.access import Principal
from corecube.errors import UnavailableError
from corecube.models import User
from corecube.scope import AccessScope
from retrieval.answers.answering import Answering, answer_events, answered, note, prepare
from retrieval.answers.events import Cited, Done, Failed, Outcome, Text
from retrieval.encoders.vector_cache import SentenceEncoder
from retrieval.engine.state import Query
from retrieval.engine.types import Answerability, QueryTerms, TokenCounter, Verdict
from retrieval.errors import EncoderError
from retrieval.llm.prompt import REFUSAL
from retrieval.llm.types import Citation, Cut, Notice, Piece, Route, TokenUsage, Turn, Window
from retrieval.models import SearchRecord
from retrieval.presets.corecube.config import CorecubeConfig
from retrieval.presets.preset import Preset
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.fakes import HashEncoder, ScriptedProvider
from tests.passages import made

QUEUE = made(1, "Draining the queue takes four minutes. A stuck worker raises Q-4711.", "Queues")
STAGING = made(2, "Run deployctl rollback before touching the staging database.", "Rollback")


@pytest.fixture
def answering():
    """Return a function that makes what is needed to let providers answer from two passages."""

    def make(*providers, passages=(QUEUE, STAGING), notices=(), answerability=None, **more):
        state = SimpleNamespace(
            query=Query("How long?", "How long?"),
            vector=None,
            terms=QueryTerms(),
            passages=passages,
            answerability=answerability,
            notes=(),
            scope=AccessScope("alice", ()),
        )
        preset = Preset("corecube", "Hybrid.", CorecubeConfig(), lambda *_: None, ("dense", "fulltext"))
        return Answering(
            outcome=SearchOutcome(uuid.UUID(int=1), preset, "v", state),
            principal=Principal(User(username="alice")),
            route=Route(providers, notices),
            encoder=HashEncoder(),
            sentences=SentenceEncoder(HashEncoder()),
            question="How long does draining take?",
            **more,
        )

    return make


def events_of(answering):
    async def read():
        return [event async for event in answer_events(answering)]

    return asyncio.run(read())


def text_of(events):
    return "".join(event.text for event in events if isinstance(event, Text))


def test_text_and_citations_come_as_they_settle_and_then_the_whole(answering):
    *events, done = events_of(answering(ScriptedProvider("It takes four minutes [", "1", ", 9].", TokenUsage(30, 6))))
    assert events == [Text("It takes four minutes"), Text(" [1]."), Cited((Citation(1, 22, 25),))]
    assert isinstance(done, Done)
    assert (done.text, done.citations, done.cited) == ("It takes four minutes [1].", (Citation(1, 22, 25),), (1,))
    assert (done.provider, done.extractive, done.refused, done.removed) == ("scripted", False, False, 1)
    assert (done.usage, done.unsupported, done.notices) == (TokenUsage(30, 6), (), ())


def test_without_the_services_word_usage_is_estimated_and_says_so(answering):
    done = answered(answering(ScriptedProvider("Four minutes [1].")))
    # "How long does draining take?" is 6 tokens and each passage 12; "Four minutes [1]." is 6.
    assert done.usage == TokenUsage(6 + 24, 6, is_estimated=True)


def test_blanks_before_the_first_word_are_left_out(answering):
    assert text_of(events_of(answering(ScriptedProvider(" \n", "\n Four", " [1]")))) == "Four [1]"


def test_blanks_after_the_first_word_stay_while_it_is_held_back(answering):
    said = ("```", "sh", "\n", "deployctl", " rollback", "\n```", "\n[2]")
    assert text_of(events_of(answering(ScriptedProvider(*said)))) == "```sh\ndeployctl rollback\n```\n[2]"


def test_a_provider_that_fails_before_its_first_word_is_followed_by_the_next(answering):
    first, second = ScriptedProvider("", UnavailableError("Down."), name="one"), ScriptedProvider("Yes [1]", name="two")
    events = events_of(answering(first, second, notices=(Notice("bound_to_model", "Only one may."),)))
    notices = [event for event in events if isinstance(event, Notice)]
    assert [notice.code for notice in notices] == ["bound_to_model", "fell_back"]
    assert (events[-1].text, events[-1].provider, events[-1].notices) == ("Yes [1]", "two", tuple(notices))
    assert "Down" not in notices[1].text
    assert (first.begun, first.ended, second.begun) == (1, 1, 1)


@pytest.mark.parametrize("steps", [(), ("  ", "\n"), (TokenUsage(3, 0),)])
def test_a_provider_without_a_word_has_not_answered(answering, steps):
    assert answered(answering(ScriptedProvider(*steps), ScriptedProvider("Yes", name="two"))).provider == "two"


def test_when_all_fail_the_last_failure_is_raised(answering):
    providers = ScriptedProvider(UnavailableError("One.")), ScriptedProvider(UnavailableError("Two."))
    with pytest.raises(UnavailableError, match="Two"):
        events_of(answering(*providers))


def test_a_failure_after_the_first_word_ends_the_answer_with_what_there_is(answering):
    follower = ScriptedProvider("never asked")
    events = events_of(answering(ScriptedProvider("Half a [1] sen", UnavailableError("Cut.")), follower))
    failed = events[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.code, failed.so_far.text, failed.so_far.cited) == ("unavailable", "Half a [1] sen", (1,))
    assert failed.so_far.usage.is_estimated
    assert follower.begun == 0


def test_an_unknown_failure_keeps_its_words_to_itself(answering):
    failed = events_of(answering(ScriptedProvider("Half", ValueError("secret"))))[-1]
    assert (failed.error.code, "secret" in str(failed.error)) == ("internal_error", False)


def test_who_does_not_stream_gets_the_failure_raised(answering):
    with pytest.raises(UnavailableError):
        answered(answering(ScriptedProvider("Half", UnavailableError("Cut."))))


def test_who_does_not_stream_gets_the_next_providers_answer_also_after_the_first_word(answering):
    first = ScriptedProvider("Half", UnavailableError("Cut."), name="one")
    done = answered(answering(first, ScriptedProvider("Yes [1]", name="two")))
    assert (done.text, done.provider, [it.code for it in done.notices]) == ("Yes [1]", "two", ["fell_back"])


@pytest.mark.parametrize(("cut", "code"), [(Cut.LENGTH, "cut_short"), (Cut.CONTENT_FILTER, "content_filtered")])
def test_an_answer_that_was_cut_is_no_whole_one(answering, cut, code):
    *events, done = events_of(answering(ScriptedProvider("Four [1] min", cut)))
    assert (done.text, done.cut, [it.code for it in done.notices]) == ("Four [1] min", cut, [code])
    assert done.notices[0] in events


@pytest.mark.parametrize(
    ("said", "verdict", "codes", "outcome"),
    [
        ("Four [1].", Verdict.NOT_ANSWERABLE, ["doubtful"], Outcome.HEDGED),
        ("Four [1].", Verdict.PARTIAL, [], Outcome.ASSERTED),
        (f"{REFUSAL} Sorry.", Verdict.NOT_ANSWERABLE, [], Outcome.REFUSED),
        (f"{REFUSAL} Sorry.", Verdict.ANSWERABLE, ["overlooked"], Outcome.REFUSED),
        ("Four [1].", Verdict.ANSWERABLE, [], Outcome.ASSERTED),
    ],
)
def test_an_answer_to_what_the_sources_do_not_seem_to_say_tells_so(answering, said, verdict, codes, outcome):
    judged = Answerability(verdict=verdict, confidence=0.16, is_calibrated=True)
    *events, done = events_of(answering(ScriptedProvider(said), answerability=judged))
    assert ([it.code for it in done.notices], done.outcome) == (codes, outcome)
    assert [it for it in events if isinstance(it, Notice)] == list(done.notices)


def test_an_answer_from_passages_that_contradict_each_other_tells_so_and_stays_asserted(answering):
    judged = Answerability(
        verdict=Verdict.ANSWERABLE, confidence=0.9, is_calibrated=True, reason="conflicting", explanation="They differ."
    )
    *_, done = events_of(answering(ScriptedProvider("Four [1]."), answerability=judged))
    assert [(it.code, it.text) for it in done.notices] == [("conflicting", "They differ.")]
    assert done.outcome == "asserted"


def test_without_a_stream_no_connection_is_kept_meanwhile(transactional_db, answering):
    held = []

    class Watching(ScriptedProvider):
        async def stream(self, _task):
            held.append(await sync_to_async(lambda: connection.connection)())
            yield Piece("Yes [1].")

    User.objects.count()
    assert connection.connection is not None
    answered(answering(Watching()))
    assert held == [None]


def test_a_refusal_that_cannot_be_noted_leaves_the_answer(world, monkeypatch):
    def lost(*_):
        raise OperationalError

    principal = world.principal("bob")
    prepared = prepare(search(SearchRequest(text="rollback staging database"), principal=principal), principal)
    monkeypatch.setattr(SearchRecord.objects, "mark_refused", lost)
    note(prepared, replace(answered(prepared), outcome=Outcome.REFUSED))
    assert SearchRecord.objects.exists()


def test_a_marker_that_was_cut_off_is_never_shown(answering):
    *events, failed = events_of(answering(ScriptedProvider("Half of it [", "1", UnavailableError("Cut."))))
    assert text_of(events) == failed.so_far.text == "Half of it"


def test_a_reader_who_leaves_stops_the_provider_at_once(answering):
    provider = ScriptedProvider("One ", 60.0, "two")

    async def leave():
        async with aclosing(answer_events(answering(provider))) as events:
            await anext(events)
        return provider.ended, len(asyncio.all_tasks())

    assert asyncio.run(leave()) == (1, 1)


def test_a_refusal_is_told_and_not_checked(answering):
    done = answered(answering(ScriptedProvider(f"{REFUSAL} Nothing is said of the regatta.")))
    assert (done.refused, done.unsupported) == (True, ())


def test_keys_numbers_and_code_after_a_refusal_are_checked(answering):
    said = f"{REFUSAL} Nothing is said of the Regatta. Try Ctrl+U or wait 99 minutes."
    done = answered(answering(ScriptedProvider(said)))
    assert done.refused
    assert [done.text[it.start : it.end] for it in done.unsupported] == ["Try Ctrl+U or wait 99 minutes."]


def test_sentences_without_support_are_marked_where_they_stand(answering):
    done = answered(answering(ScriptedProvider("Draining takes four minutes [1]. It takes nine hours on Mondays [1].")))
    assert [(done.text[it.start : it.end], it.reason) for it in done.unsupported] == [
        ("It takes nine hours on Mondays [1].", "number")
    ]


def test_a_sentence_without_a_marker_gets_the_citation_of_its_passage_also_in_the_stream(answering):
    said = "Draining the queue takes four minutes. Run deployctl rollback before the staging database is touched."
    pieces = said.replace(" ", " |").split("|")
    *events, done = events_of(answering(ScriptedProvider(*pieces)))
    assert done.text == (
        "Draining the queue takes four minutes [1]. Run deployctl rollback before the staging database is touched [2]."
    )
    assert text_of(events) == done.text
    assert (done.cited, done.unsupported, done.outcome) == ((1, 2), (), Outcome.ASSERTED)
    place = done.text.index("[2]")
    assert Cited((Citation(2, place, place + 3),)) in events


@pytest.mark.parametrize(
    ("said", "numbers"),
    [
        ("```\ndeployctl rollback\n```", (2,)),
        ("```\ndeployctl rollback\n", ()),
        ("```\ndeployctl remove\n```", ()),
        ("```markdown\n```sh\ndeployctl rollback\n```", (2,)),
        ("Run it [1]:\n\n```\ndeployctl rollback\n```", (1,)),
    ],
)
def test_an_answer_that_is_only_code_gets_the_citation_of_its_passage(answering, said, numbers):
    done = answered(answering(ScriptedProvider(said)))
    assert done.cited == numbers
    assert done.text.startswith(said.rstrip())


def test_a_sentence_that_no_passage_supports_is_marked_and_an_answer_without_citations_says_so(answering):
    *events, done = events_of(answering(ScriptedProvider("Penguins prefer colder weather than flamingos.")))
    assert [(done.text[it.start : it.end], it.reason) for it in done.unsupported] == [(done.text, "uncited")]
    assert ([it.code for it in done.notices], done.outcome) == (["uncited"], Outcome.HEDGED)
    assert done.notices[0] in events


def test_an_unsupported_sentence_gets_no_citation_of_its_neighbors(answering):
    done = answered(answering(ScriptedProvider("Draining the queue takes four minutes. It takes 99 workers.")))
    assert done.text == "Draining the queue takes four minutes [1]. It takes 99 workers."
    assert [it.reason for it in done.unsupported] == ["number"]


def test_a_refusal_gets_no_citation_and_quotes_are_not_changed(answering, world):
    done = answered(answering(ScriptedProvider(f"{REFUSAL} Draining the queue takes four minutes.")))
    assert (done.text, done.cited) == (f"{REFUSAL} Draining the queue takes four minutes.", ())
    assert done.notices == ()


def test_sentences_are_matched_by_words_when_the_embedding_model_fails(answering):
    class Failing:
        def encode_documents(self, _texts):
            raise EncoderError("Down.")

    prepared = replace(
        answering(ScriptedProvider("A slow stuck worker of the queue raises trouble with Q-4711 today.")),
        sentences=Failing(),
    )
    assert answered(prepared).text.endswith("Q-4711 today.")


def test_a_task_is_cut_to_the_providers_window_and_the_reader_told(answering):
    provider = ScriptedProvider("Yes [1] and [2].", window=Window(1024, 16))
    long = made(2, "word " * 900)
    history = (Turn("q", "a " * 900),)
    done = answered(answering(provider, passages=(QUEUE, long), history=history))
    assert (provider.tasks[0].passages, provider.tasks[0].history) == ((QUEUE,), ())
    assert [notice.code for notice in done.notices] == ["context_shortened", "history_shortened"]
    # A passage that the model has not seen cannot be cited.
    assert (done.text, done.removed) == ("Yes [1] and.", 1)


def test_a_window_is_filled_in_the_models_own_tokens(answering):
    letters = TokenCounter("letters", lambda texts: [len(text) for text in texts])
    history = (Turn("q", "word " * 1200),)
    for counter, kept in ((None, history), (letters, ())):
        provider = ScriptedProvider("Yes [1].", window=Window(6000, 16, counter))
        answered(answering(provider, history=history))
        assert provider.tasks[0].history == kept


def test_a_provider_for_which_the_question_is_too_long_is_passed_over(answering):
    small = ScriptedProvider("small", window=Window(1024, 1000), name="small")
    done = answered(answering(small, ScriptedProvider("large", name="large")))
    assert (done.provider, small.begun) == ("large", 0)


def test_prepared_from_a_search_the_extractive_answer_quotes(world):
    principal = world.principal("bob")
    outcome = search(SearchRequest(text="rollback staging database"), principal=principal)
    done = answered(prepare(outcome, principal))
    assert (done.extractive, done.refused, done.unsupported) == (True, False, ())
    assert "Run deployctl rollback before touching the staging database." in done.text
    assert done.usage.is_estimated


def test_where_nothing_was_found_only_the_extractive_answerer_speaks(world, monkeypatch):
    from retrieval.answers import answering as module

    principal = world.principal("charlie")
    outcome = search(SearchRequest(text="rollback"), principal=principal)
    quoting = prepare(outcome, principal).route.providers[-1]
    route = Route((ScriptedProvider("I guess that it is fine."), quoting))
    monkeypatch.setattr(module, "route_for", lambda *_, **__: route)
    done = answered(prepare(outcome, principal))
    assert (done.provider, done.refused) == ("extractive", True)


@pytest.mark.parametrize(
    ("said", "refused"), [(Outcome.REFUSED, True), (Outcome.ASSERTED, False), (Outcome.HEDGED, False)]
)
def test_the_searchs_record_knows_a_refusal(world, said, refused):
    principal = world.principal("bob")
    outcome = search(SearchRequest(text="rollback staging database"), principal=principal)
    prepared = prepare(outcome, principal)
    note(prepared, replace(answered(prepared), outcome=said))
    assert SearchRecord.objects.get(pk=outcome.id).is_refused is refused
