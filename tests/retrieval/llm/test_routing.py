"""The rule that says which language model may read which passages."""

import asyncio
from contextlib import aclosing
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corecube.errors import NotPermittedError
from retrieval.engine.types import Passage, QueryTerms
from retrieval.llm.model_provider import ModelProvider
from retrieval.llm.routing import Bindings, Candidate, Plan, Reason, plan
from retrieval.llm.types import Piece, Task, TokenUsage, Turn, Window
from tests.retrieval.conftest import hit

CLOUD, LOCAL, SPARE = 1, 2, 3
MODELS = {it: Candidate(it) for it in (CLOUD, LOCAL, SPARE)}
FREE = Bindings()


def test_the_default_answers_from_free_passages():
    assert plan(MODELS, chosen=CLOUD, connections=[7, 8], bindings=FREE) == Plan((CLOUD,))


def test_nothing_is_chosen_without_a_default():
    assert plan(MODELS, chosen=None, connections=[7], bindings=FREE) == Plan()


def test_a_barred_user_gets_quotations_only():
    bound = Bindings({7: LOCAL})
    assert plan(MODELS, chosen=None, connections=[7], bindings=bound, is_barred=True) == Plan()


def test_one_binding_decides_over_the_choice():
    bound = Bindings({7: LOCAL})
    assert plan(MODELS, chosen=CLOUD, connections=[7, 8], bindings=bound) == Plan((LOCAL,), Reason.BOUND)
    assert plan(MODELS, chosen=LOCAL, connections=[7, 8], bindings=bound) == Plan((LOCAL,))
    assert plan(MODELS, chosen=CLOUD, connections=[8], bindings=bound) == Plan((CLOUD,))


@pytest.mark.parametrize("bound", [{7: LOCAL, 8: CLOUD}, {7: None}, {7: LOCAL, 8: None}])
def test_nobody_answers_where_no_model_may_read_all(bound):
    got = plan(MODELS, chosen=CLOUD, connections=[7, 8], bindings=Bindings(bound))
    assert got == Plan((), Reason.MAY_NOT_READ)


def test_a_connection_whose_rules_are_unknown_is_kept_from_everyone():
    got = plan(MODELS, chosen=CLOUD, connections=[9], bindings=Bindings({}, known=frozenset({7})))
    assert got.models == ()


def test_the_chain_is_followed_without_going_round():
    models = {
        CLOUD: Candidate(CLOUD, fallback=SPARE),
        SPARE: Candidate(SPARE, is_usable=False, fallback=LOCAL),
        LOCAL: Candidate(LOCAL, fallback=CLOUD),
    }
    assert plan(models, chosen=CLOUD, connections=[7], bindings=FREE).models == (CLOUD, LOCAL)


def test_the_chain_of_a_bound_model_leads_nowhere_else():
    models = {**MODELS, LOCAL: Candidate(LOCAL, fallback=CLOUD)}
    got = plan(models, chosen=CLOUD, connections=[7], bindings=Bindings({7: LOCAL}))
    assert got.models == (LOCAL,)


def test_a_bound_model_that_is_off_is_followed_by_nobody():
    models = {**MODELS, LOCAL: Candidate(LOCAL, is_usable=False, fallback=CLOUD)}
    got = plan(models, chosen=CLOUD, connections=[7], bindings=Bindings({7: LOCAL}))
    assert got == Plan((), Reason.SWITCHED_OFF)


ids = st.integers(1, 5)
owners = st.one_of(st.none(), ids)
worlds = st.fixed_dictionaries(
    {
        "models": st.dictionaries(ids, st.tuples(st.booleans(), owners), max_size=5),
        "chosen": owners,
        "connections": st.sets(st.integers(1, 6), max_size=6),
        "bound": st.dictionaries(st.integers(1, 6), owners, max_size=6),
        "known": st.one_of(st.none(), st.frozensets(st.integers(1, 6))),
        "is_barred": st.booleans(),
    }
)
turns = st.lists(
    st.builds(Turn, question=st.just("q"), answer=st.just("a"), connections=st.one_of(st.none(), st.frozensets(ids))),
    max_size=4,
)


class Listener:
    """A client that keeps what it is sent."""

    def __init__(self):
        self.heard = []

    async def stream(self, messages, _options):
        self.heard.extend(message["content"] for message in messages)
        yield Piece("Said [1].")


async def nothing(*_):
    pass


def provider(model, bindings, client):
    return ModelProvider(
        id=model,
        name=f"model-{model}",
        client=client,
        window=Window(8192, 1024),
        bindings=bindings,
        count=lambda texts: [len(text.split()) for text in texts],
        record_usage=nothing,
    )


def task(connections, history=()):
    passages = tuple(
        Passage(number, hit(number, text=f"secret-of-{it}.", connection_id=it), f"### [{number}] T", 5)
        for number, it in enumerate(sorted(connections), start=1)
    )
    return Task(question="What?", passages=passages, terms=QueryTerms(), history=tuple(history))


def asked(one, work):
    async def read():
        async with aclosing(one.stream(work)) as pieces:
            return [piece async for piece in pieces]

    return asyncio.run(read())


@given(worlds, turns)
def test_no_model_receives_what_is_bound_elsewhere(world, history):
    bindings = Bindings(world["bound"], world["known"])
    models = {it: Candidate(it, usable, fallback) for it, (usable, fallback) in world["models"].items()}
    got = plan(
        models,
        chosen=world["chosen"],
        connections=world["connections"],
        bindings=bindings,
        is_barred=world["is_barred"],
    )
    assert len(set(got.models)) == len(got.models)
    told = [replace(turn, answer=f"said-from-{place}.") for place, turn in enumerate(history)]
    for model in got.models:
        assert models[model].is_usable
        client = Listener()
        asked(provider(model, bindings, client), task(world["connections"], told))
        heard = " ".join(client.heard)
        for connection, owner in world["bound"].items():
            assert owner == model or f"secret-of-{connection}." not in heard
        for place, turn in enumerate(history):
            origins = world["bound"] if turn.connections is None else turn.connections
            foreign = any(world["bound"].get(it, model) != model for it in origins)
            assert not (foreign and f"said-from-{place}." in heard)


@given(worlds, ids)
def test_a_provider_refuses_what_it_may_not_read_whoever_asks(world, model):
    """Also where a route was worked out wrongly, nothing leaves."""
    bindings = Bindings(world["bound"], world["known"])
    client = Listener()
    if bindings.allow(model, world["connections"]):
        asked(provider(model, bindings, client), task(world["connections"]))
        assert client.heard
    else:
        with pytest.raises(NotPermittedError):
            asked(provider(model, bindings, client), task(world["connections"]))
        assert client.heard == []


def test_a_turn_of_unknown_origin_may_come_from_whatever_is_open_to_the_user():
    turn = Turn("q", "a")
    bound = Bindings({7: LOCAL, 8: None}, reachable=frozenset({7}))
    assert provider(LOCAL, bound, Listener()).may_read(turn)
    assert not provider(CLOUD, bound, Listener()).may_read(turn)
    assert provider(CLOUD, replace(bound, reachable=frozenset()), Listener()).may_read(turn)


def test_what_agents_remember_is_of_unknown_origin():
    bound = Bindings({7: LOCAL, 8: None}, reachable=frozenset({7, 9}), memories=frozenset({9}))
    assert plan(MODELS, chosen=CLOUD, connections=[9, 10], bindings=bound) == Plan((LOCAL,), Reason.BOUND)
    assert not bound.allow(CLOUD, [9])
    assert not provider(CLOUD, bound, Listener()).may_read(Turn("q", "a", frozenset({9})))
    free = replace(bound, reachable=frozenset({9}))
    assert plan(MODELS, chosen=CLOUD, connections=[9, 10], bindings=free) == Plan((CLOUD,))
    everywhere = replace(bound, reachable=frozenset({7, 8}))
    assert plan(MODELS, chosen=CLOUD, connections=[9], bindings=everywhere) == Plan((), Reason.MAY_NOT_READ)


class Leaving:
    async def stream(self, *_):
        yield Piece("one two")
        yield Piece(" three")
        raise AssertionError("nobody reads on")


def test_what_a_reader_leaves_is_spent_all_the_same():
    spent = []

    async def note(usage, seconds):
        await asyncio.sleep(0)
        spent.append((usage, seconds))

    async def leave():
        one = replace(provider(CLOUD, FREE, Leaving()), record_usage=note)
        async with aclosing(one.stream(task([7]))) as pieces:
            await anext(pieces)

    asyncio.run(leave())
    (usage, seconds) = spent[0]
    assert usage.completion == 2
    assert usage.is_estimated
    assert usage.prompt > 10
    assert seconds >= 0


def test_the_service_is_believed_where_it_counts():
    class Counting:
        async def stream(self, *_):
            yield Piece("Said.")
            yield Piece(usage=TokenUsage(11, 1))

    assert asked(provider(CLOUD, FREE, Counting()), task([7]))[-1].usage == TokenUsage(11, 1)
