"""Following names and links, from the question to the pool."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from corecube.access import scope_for
from corecube.errors import DatabaseUnavailableError
from retrieval.engine.deadline import Deadline
from retrieval.engine.query import read_query
from retrieval.engine.state import SearchState
from retrieval.engine.types import ChunkId
from retrieval.errors import EncoderError, SearchTimeoutError
from retrieval.index import active, graph
from retrieval.ingest.sync import sync_connection
from retrieval.models import Document
from retrieval.presets.helix.expansion import GraphConfig
from retrieval.presets.helix.pipeline import prefetch_question
from retrieval.presets.helix.stages.expand import Expand
from retrieval.presets.helix.stages.names import LinkEntities, QuestionNames
from retrieval.presets.helix.stages.route import Route, RouteConfig
from retrieval.search import runtime
from retrieval.stages.analyze import Analyze
from retrieval.stages.complete import Complete, PrefetchPool
from retrieval.stages.dense import Dense, DenseConfig
from retrieval.stages.embed import Embed
from retrieval.stages.fulltext import Fulltext, FulltextConfig
from retrieval.stages.fuse import Fuse, FusionConfig

_PAGES = {
    "guy.md": "# Guy of Tuscany\n\nGuy was a count. His brother was Lambert of Spoleto, who came from Provence.\n",
    "lambert.md": "# Lambert of Spoleto\n\nA margrave, dismissed in the year 931.\n",
    "rome.md": "# Castle guide\n\nThe walls are old. A count lived there.\n",
    "provence.md": "# River notes\n\nFerries leave from Provence at dawn.\n",
}


@pytest.fixture
def pages(governed, sync_once):
    for name, text in _PAGES.items():
        (governed.root / "runbooks" / name).write_text(text)
    (governed.root / "vault" / "secret.md").write_text("# Lambert of Spoleto\n\nSecret: he hid in Provence.\n")
    sync_once(governed.runbooks, governed.vault)
    return governed


@pytest.fixture
def search(pages):
    tools = runtime.resources(active.encoder())

    def run(question, *, name="bob", depth=1, complete=True, ahead=False, threads=None, **config):
        state = SearchState(
            query=read_query(question, characters=500),
            scope=scope_for(pages.principal(name)),
            deadline=Deadline.after(5.0),
            now=datetime(2026, 6, 1, tzinfo=UTC),
            top_k=10,
        )
        graph_config = GraphConfig(**config)
        names, rest = LinkEntities(graph_config, tools.encoder, "english"), Complete(FulltextConfig(), tools.index)
        analyze = Analyze("english")
        route = Route(RouteConfig(), lambda: None)
        begin = (
            (prefetch_question(analyze, route, Dense(DenseConfig(), tools.index), names, threads),) if threads else ()
        )
        state = analyze(Embed(tools.encoder, ahead=begin)(state))
        state = Dense(DenseConfig(depth=depth), tools.index)(state)
        state = Fuse(FusionConfig())(Fulltext(FulltextConfig(depth=depth))(state))
        if ahead or threads:
            state = names(state)
        state = Expand(graph_config, tools.index, names, PrefetchPool(rest, threads) if threads else None)(state)
        return rest(state) if complete else state

    return run


@pytest.fixture
def threads():
    with runtime.DatabaseThreads(2, thread_name_prefix="ahead") as pool:
        yield pool


def titles(state):
    return list(dict.fromkeys(hit.chunk.title for hit in state.hits))


def test_what_is_named_and_what_it_leads_to_sit_first(search):
    state = search("When was the brother of Guy of Tuscany dismissed?")
    assert titles(state)[:2] == ["Guy of Tuscany", "Lambert of Spoleto"]
    named, linked = state.hits[:2]
    assert next((it.kind, it.name) for it in named.lifts) == ("named", "Guy of Tuscany")
    lift = next(it for it in linked.lifts if it.kind == "link")
    assert lift.name == "Lambert of Spoleto"
    assert lift.source == named.chunk_id
    assert lift.sentence == "His brother was Lambert of Spoleto, who came from Provence."
    assert [hit.signals["seat"] for hit in state.hits[:2]] == [1, 2]
    assert 0 < linked.signals["graph"] <= 1


def test_the_parts_sum_to_the_score_and_the_order_is_the_scores(search):
    hits = search("When was the brother of Guy of Tuscany dismissed?", depth=10).hits
    assert all(sum(hit.contributions.values()) == pytest.approx(hit.score) for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("depth", [1, 10])
def test_what_is_read_ahead_changes_no_hit(search, threads, depth):
    question = "When was the brother of Guy of Tuscany dismissed?"
    ahead, after = search(question, depth=depth, threads=threads), search(question, depth=depth)
    assert ahead.hits == after.hits
    assert ahead.part(QuestionNames).rest == "When was the brother of dismissed?"


def test_a_rare_shared_name_leads_on(search):
    state = search("When was the brother of Guy of Tuscany dismissed?")
    lift = next(it for hit in state.hits for it in hit.lifts if it.kind == "shared_name")
    assert lift.name == "Provence"
    assert "River notes" in titles(state)


def test_of_a_long_document_the_best_chunks_are_read(search, pages):
    towns = ["Aldwick", "Brantham", "Corfe", "Dunster", "Elvaston"]
    years = [
        f"## Year {number}\n\n{f'annal{number} ' * 450}The king rode to {town}." for number, town in enumerate(towns)
    ]
    (pages.root / "runbooks" / "chronicle.md").write_text("# Chronicle\n\n" + "\n\n".join(years))
    for town in towns:
        (pages.root / "runbooks" / f"{town}.md").write_text(f"# {town}\n\nA market is held there.\n")
    sync_connection(pages.runbooks)

    def followed(limit):
        state = search("annal2 of the king", depth=10, named=0, top_seeds=1, seed_chunks=limit)
        return {lift.name for hit in state.hits for lift in hit.lifts if lift.kind == "link"}

    assert followed(1) == {"Corfe"}
    assert followed(100) > {"Corfe"}


def test_a_wrong_letter_is_forgiven_among_what_was_found(search):
    state = search("When was the brother of Guuy of Tuscny dismissed?", depth=10)
    assert "named" in {lift.kind for hit in state.hits for lift in hit.lifts if hit.chunk.title == "Guy of Tuscany"}
    found, spelling = state.notes[-2:]
    assert "1 of them misspelled" in found.text
    assert (spelling.code, spelling.text) == ("spelling", "Read “Guuy of Tuscny” as “Guy of Tuscany”.")


def test_a_name_that_stands_there_as_it_is_was_not_read_as_another(search):
    assert "spelling" not in {note.code for note in search("when was GUY OF TUSCANY born", depth=10).notes}
    assert "spelling" not in {note.code for note in search("When was Guy of Tuscany born?", depth=10).notes}


@pytest.mark.parametrize(
    "question",
    [
        "When was the brother of Guy of Tuscany dismissed?",
        "When was the brother of Guuy of Tuscny dismissed?",
        "Did Guy of Tuscany know Lambert of Spoleto?",
        "which walls are old",
        "Lambert of Spoleto",
    ],
)
def test_names_that_were_read_ahead_lift_the_same(search, question):
    alone, ahead = search(question, depth=10), search(question, depth=10, ahead=True)
    assert ahead.hits == alone.hits
    assert ahead.notes == alone.notes


def test_what_was_embedded_ahead_is_not_embedded_again(search, monkeypatch):
    question = "When was the brother of Guy of Tuscany dismissed?"
    texts = []
    encode = LinkEntities.encoded
    monkeypatch.setattr(LinkEntities, "encoded", lambda *given: texts.append(given[1]) or encode(*given))
    assert titles(search(question, ahead=True))[:2] == ["Guy of Tuscany", "Lambert of Spoleto"]
    assert texts == ["When was the brother of dismissed?"]


def test_of_many_documents_with_one_name_the_one_that_was_found_counts(search, pages):
    for number in range(25):
        (pages.root / "runbooks" / f"many{number}.md").write_text(f"# Guy of Spoleto\n\nA count, {number}x{number}.\n")
    sync_connection(pages.runbooks)
    for ahead in (False, True):
        first = search("Who is Guy of Spoleto, 24x24?", depth=30, ahead=ahead).hits[0]
        assert "24x24" in first.chunk.text


def test_without_a_connection_for_the_other_thread_the_pool_is_read_by_this_one(search):
    def unavailable():
        raise DatabaseUnavailableError

    state = search("When was the brother of Guy of Tuscany dismissed?", depth=10, complete=False)
    complete = Complete(FulltextConfig(), active.active_index(active.encoder()))
    assert complete(replace(state, prefetch={"complete": unavailable})).hits == complete(state).hits != ()


def test_a_second_hop_is_followed_where_it_is_asked_for(search, pages):
    (pages.root / "runbooks" / "lambert.md").write_text("# Lambert of Spoleto\n\nA friend of Ageltrude Benevento.\n")
    (pages.root / "runbooks" / "age.md").write_text("# Ageltrude Benevento\n\nShe had a monastery built.\n")
    sync_connection(pages.runbooks)
    question = "When was the brother of Guy of Tuscany dismissed?"
    assert "Ageltrude Benevento" not in titles(search(question))
    state = search(question, hops=2)
    (hit,) = (it for it in state.hits if it.chunk.title == "Ageltrude Benevento")
    assert hit.lifts[0].sentence == "A friend of Ageltrude Benevento."


def test_where_an_author_links_to_is_followed(search, pages):
    guide = "# Castle guide\n\nThe walls are old. See [the other page](notes/ferries.md#times) for boats.\n"
    (pages.root / "runbooks" / "rome.md").write_text(guide)
    (pages.root / "runbooks" / "notes").mkdir()
    (pages.root / "runbooks" / "notes" / "ferries.md").write_text("# Timetable\n\nAt dawn and at noon.\n")
    sync_connection(pages.runbooks)
    state = search("which walls are old")
    (hit,) = (it for it in state.hits if it.chunk.title == "Timetable")
    (lift,) = hit.lifts
    assert (lift.kind, lift.name) == ("hyperlink", "the other page")
    assert lift.sentence == "See the other page for boats."
    assert "Timetable" not in titles(search("which walls are old", name="charlie"))


def test_what_stands_beside_a_hit_is_lifted_where_it_is_asked_for(search, pages):
    sections = "\n\n".join(f"## Part {n}\n\n{' '.join(f'word{n}x{m}' for m in range(400))}" for n in range(3))
    (pages.root / "runbooks" / "long.md").write_text(f"# Long page\n\n{sections}\n")
    sync_connection(pages.runbooks)
    assert {hit.chunk_id.ordinal for hit in search("word1x7").hits if hit.chunk.title == "Long page"} == {1}
    hits = search("word1x7", next_share=0.2).hits
    beside = {hit.chunk_id.ordinal: hit.lifts for hit in hits if hit.chunk.title == "Long page"}
    assert {ordinal: [lift.kind for lift in lifts] for ordinal, lifts in beside.items()} == {
        0: ["next"],
        1: [],
        2: ["next"],
    }


def test_a_question_that_names_nothing_follows_no_shared_name(search):
    state = search("which walls are old", depth=10)
    assert not [lift for hit in state.hits for lift in hit.lifts if lift.kind != "link"]


def test_a_link_by_a_common_word_weighs_less(search, pages, sync_once):
    def weight():
        state = search("Who was a count of Tuscany?", hub_links=1)
        (hit,) = [it for it in state.hits if it.chunk_id == rivers]
        return max(lift.amount for lift in hit.lifts)

    pages_of = pages.root / "runbooks"
    (pages_of / "provence.md").write_text("# Provence\n\nFerries leave at dawn.\n")
    sync_once(pages.runbooks)
    rivers = ChunkId(Document.objects.get(external_id="provence.md").pk, 0)
    rare = weight()
    for number in range(6):
        (pages_of / f"letter-{number}.md").write_text(f"Letter {number}\n\nto a friend in provence, number {number}.")
    sync_once(pages.runbooks)
    assert 0 < weight() < 0.5 * rare


def test_nothing_out_of_scope_is_brought_in_or_quoted(search):
    question = "When was the brother of Guy of Tuscany dismissed?"
    bob, alice = search(question), search(question, name="alice")
    assert "Secret" not in str(bob.hits)
    assert len([hit for hit in alice.hits if "Secret" in hit.chunk.text]) == 1
    # One of two documents with the name is out of Bob's sight: for him the link counts in full.
    weights = [
        next(lift.amount for hit in state.hits for lift in hit.lifts if lift.kind == "link") for state in (bob, alice)
    ]
    assert weights[0] > weights[1]


def named(state):
    return {hit.chunk.title for hit in state.hits for lift in hit.lifts if lift.kind == "named"}


@pytest.fixture
def gantry(pages):
    for number, text in enumerate(["codes for doors", "protocol of the walls", "gantry walls", "walls and codes"]):
        (pages.root / "runbooks" / f"note{number}.md").write_text(f"# Note {number}\n\nAbout {text}.\n")
    (pages.root / "runbooks" / "gantry.md").write_text("# Gantry protocol codes\n\nA red lamp is 17.\n")
    (pages.root / "runbooks" / "walls.md").write_text("# Walls\n\nWhich of the walls are old.\n")
    sync_connection(pages.runbooks)


@pytest.mark.usefixtures("gantry")
@pytest.mark.parametrize(
    "question",
    [
        "gantry protocol codes",
        "What do gantry protocol codes mean?",
        "LIST ALL GANTRY PROTOCOL CODES",
        "gantrry protocol codes",
    ],
)
def test_a_title_is_recognised_in_any_case_where_the_phrase_is_rare(search, question):
    # Each of its words is in other documents, the phrase in none.
    state = search(question, depth=10, hub_links=1)
    assert named(state) == {"Gantry protocol codes"}
    assert titles(state)[0] == "Gantry protocol codes"


@pytest.mark.usefixtures("gantry")
@pytest.mark.parametrize(
    "question", ["which walls are old", "WHICH WALLS ARE OLD", "Walls that are old", "which wals are old"]
)
def test_a_common_word_names_no_document_by_its_title(search, question):
    # Four other chunks than the one of that title contain it.
    assert named(search(question, depth=10, hub_links=1, seat_share=0.0)) == set()
    assert named(search(question, depth=10, hub_links=4, seat_share=0.0)) == {"Walls"}


@pytest.mark.parametrize(
    ("error", "code"), [(SearchTimeoutError, "expand_timeout"), (EncoderError("down"), "expand_failed")]
)
@pytest.mark.parametrize("step", ["subgraph", "likeness"])
def test_a_step_that_fails_leaves_what_the_others_found(search, monkeypatch, step, error, code):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(graph, step, fail)
    state = search("When was the brother of Guy of Tuscany dismissed?", depth=10)
    assert [note.code for note in state.notes if note.degraded] == [code]
    assert titles(state)[0] == "Guy of Tuscany"
    assert {lift.kind for hit in state.hits for lift in hit.lifts} == {"named"}


def test_a_phrase_that_could_not_be_counted_names_nothing(search, monkeypatch):
    def fail(*_, **__):
        raise SearchTimeoutError

    monkeypatch.setattr(graph, "common_phrases", fail)
    state = search("when was the brother of guy of tuscany dismissed", depth=10, ahead=True)
    assert [note.code for note in state.notes if note.degraded] == ["expand_timeout"]
    assert named(state) == set()


def test_without_a_vector_the_pool_stays(search):
    tools = runtime.resources(active.encoder())
    state = replace(search("old walls", complete=False), vector=None)
    assert Expand(GraphConfig(), tools.index, LinkEntities(GraphConfig(), tools.encoder, "english"))(state) is state
