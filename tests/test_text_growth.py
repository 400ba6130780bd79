"""What reads documents and requests takes a time in proportion to the length of the text."""

import inspect
import json
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from uuid import UUID

import pytest

from explorer.components import answers, snippets
from retrieval.answers import claims, rewrite
from retrieval.answers.faithfulness import Checker
from retrieval.answers.quoting import choose
from retrieval.engine import query
from retrieval.engine.types import ChunkFacts, ChunkId, Hit, Passage, QueryTerms, ScoreType, Term, TermMatch
from retrieval.engine.words import TermFinder
from retrieval.graph import links, mentions, spans
from retrieval.graph.addresses import Place
from retrieval.graph.mentions import Mentions
from retrieval.graph.question import KnownName, named_in, without
from retrieval.ingest.chunk import chunk
from retrieval.ingest.parse import parse
from retrieval.llm import citations
from retrieval.presets.helix.router import question
from retrieval.ranking.answerability import signals as asked
from retrieval.ranking.near_duplicates import Words
from retrieval.ranking.quotes.candidates import candidates
from retrieval.ranking.quotes.conflicts import find_conflicts
from retrieval.ranking.quotes.ranker import Asking, shipped
from retrieval.ranking.quotes.statements import statement
from retrieval.text import identifiers, traits
from retrieval.text.document import Block, BlockKind, ChunkDraft, ChunkLimits, ParsedDocument, RawDocument
from tests.fakes import HashEncoder
from tests.growth import MAX_GROWTH_OF_OBJECTS, MIXTURES, SIGNS, Text, TooSlowError, fault, fault_between, faults
from tests.profiles import turn
from tests.test_patterns import modules

NOW = datetime(2026, 6, 1, tzinfo=UTC)
_ENCODER = HashEncoder()
_TERMS = tuple(Term(it, 3, 1.0) for it in ("a", "1", "a.a", "a/a"))
_NUMBERS = count()
_fault = partial(fault, max_growth=MAX_GROWTH_OF_OBJECTS)
_fault_between = partial(fault_between, max_growth=MAX_GROWTH_OF_OBJECTS)
_FINDER = TermFinder(_TERMS, str)
_MATCHES = [TermMatch(it.lexeme, it.idf, 1.0, "C") for it in _TERMS]


def passage(text):
    """Return a passage with a text."""
    facts = ChunkFacts(1, "Title", "", "text", (), text, 10, "hash", None, None, NOW, None)
    return Passage(1, Hit(ChunkId(UUID(int=1), 0), 1.0, ScoreType.BLEND, facts=facts), "### [1] Title", 10)


def parsed(kind, text, *, source_type="text", **facts):
    return ParsedDocument("Title", (Block(kind, text, **facts),), source_type)


def chunked(document):
    return chunk(document, _ENCODER, ChunkLimits())


def read_as(name):
    return lambda text: parse(RawDocument(name, text.encode()))


def quoted(text):
    found = candidates([passage(text)], "1 a", "german")
    asking = Asking.of("a 1 a.a", QueryTerms(_TERMS))
    return [quote.text for quote in choose(shipped().best_first(found, asking), max_characters=700)]


def contradicted(text):
    passages = [
        passage(text),
        replace(passage(text), number=2, hit=replace(passage(text).hit, chunk_id=ChunkId(UUID(int=2), 0))),
    ]
    return find_conflicts("a 1?", passages, Asking.of("a 1?", QueryTerms(_TERMS)), {})


def judged(text):
    checker = Checker.of([passage(text)], stem=str, question="a")
    return [checker.support(claim) for claim in claims.claims(text, ())[:2]]


def linked(text):
    names = [KnownName(UUID(int=number), name, 1.0) for number, name in enumerate(("A", "A A", "A b", "a/a"), 2)]
    keys = tuple(spans.number_of(name.key) for name in names)
    return links.name_links([links.SeedText(ChunkId(UUID(int=1), 0), text, Mentions(keys, len(keys)))], names)


def checked(text):
    found = citations.find_citations(text, 9)
    return answers.marked_html(text, {}), claims.claims(text, found)


#: What reads a document's or a request's text with something beside it.
CALLS = {
    "answers": checked,
    "conflicts": contradicted,
    "entities": lambda text: asked.entities(text, known=frozenset({"a", "b"}), stem=str),
    "faithfulness": judged,
    "highlight": lambda text: snippets.highlight(text, ["a", "1", "a.a", "a/a"], stem=str),
    "links": linked,
    "named_in": lambda text: named_in(text, [KnownName(UUID(int=2), "A a", 1.0)], scores={}, stems=["a"]),
    "occurrences": lambda text: mentions.occurrences(text, {"a", "a a", "a b", "1"}, any_case=True),
    "occurrences of names": lambda text: mentions.occurrences(text, {"a", "a a", "a b", "1"}),
    "place": lambda text: Place(1, "a/b.md", "https://example.org/a/b").targets(text),
    "project_in": lambda text: question.project_in(text, ["a", "aB", "a-1", "A a"]),
    "quotes": quoted,
    "read_query": lambda text: query.read_query(text, characters=len(text)),
    "statement": lambda text: statement(text, "english"),
    "words": lambda text: [getattr(Words(text), name) for name in ("numbers", "shingles", "counts", "names")],
    "sentence_around": lambda text: [spans.sentence_around(text, at, at + 1) for at in range(0, len(text), 50)],
    "share_found": lambda text: identifiers.share_found(["a", "a.a", "aa"], text),
    "snippet": lambda text: snippets.snippet(text, _MATCHES, stem=str),
    "stand_alone": lambda text: rewrite.stand_alone(text, [rewrite.Said("What is a?"), rewrite.Said(text, (text,))]),
    "cut": lambda text: query.cut(text, len(text) // 2),
    "terms": _FINDER.found,
    "time_in": lambda text: question.time_in(text, NOW),
    "traits": lambda text: traits.traits_of(ChunkDraft(0, text, (), 1), source_type="text"),
    "without": lambda text: without(text, named_in(text, [KnownName(UUID(int=2), "A", 1.0)], scores={}, stems=[])),
    **{f"parse {name}": read_as(name) for name in ("a.txt", "a.md", "a.html", "a.json", "a.csv", "a.yaml")},
    "parse a JSON text": lambda text: parse(RawDocument("a.json", json.dumps({"a": text}).encode())),
}
CHUNKED = {
    "code": lambda text: chunked(parsed(BlockKind.CODE, text, source_type="code", row=1)),
    "heading": lambda text: chunked(parsed(BlockKind.HEADING, text, source_type="markdown", level=1)),
    "list": lambda text: chunked(parsed(BlockKind.LIST, text, source_type="markdown")),
    "paragraph": lambda text: chunked(parsed(BlockKind.PARAGRAPH, text, source_type="pdf", page=1)),
    "record": lambda text: chunked(parsed(BlockKind.PARAGRAPH, text, source_type="json", row=1, header="a")),
    "table": lambda text: chunked(parsed(BlockKind.TABLE, text, source_type="csv", row=1, header=text[:9])),
    "text": lambda text: chunked(parsed(BlockKind.PARAGRAPH, text)),
    "many small blocks": lambda text: chunked(
        ParsedDocument("Title", tuple(Block(BlockKind.HEADING, line, level=1) for line in text.split("\n")), "markdown")
    ),
}
RUNS = tuple(Text(unit) for unit in dict.fromkeys((*SIGNS, *MIXTURES)))
#: Texts whose work is copying, which shows only where they are long.
LONG_RUNS = tuple(map(Text, ("a", "a ", "A b. ", "etc. ", "`a` ", "[1] ", "1,", "\n", "a\n", "\u3002")))
#: Packages whose functions read no text of strangers: start-up, settings, the command line, measuring.
_ELSEWHERE = ("corecube.embedded", "corecube.env", "corecube.settings", "corecube.checks", "retrieval.evaluation")
#: What a module asks databases, models and other machines by: its functions do more than read a text.
_OUTSIDE = (
    "django",
    "corecube.models",
    "corecube.audit",
    "retrieval.models",
    "retrieval.search.runtime",
    "socket",
    "httpx2",
)


def working(work):
    """Return the work as it is measured: refusing a text counts as reading it, and no text is remembered."""

    def measured(text):
        try:
            work(f"{text}{next(_NUMBERS)}")
        except TooSlowError:
            raise
        except Exception:  # noqa: BLE001 -- any refusal will do
            return

    return measured


def functions():
    """Yield the functions of the code that take one text and nothing else."""
    for module in modules():
        if module.__name__.startswith(_ELSEWHERE) or ".management" in module.__name__ or asks_outside(module):
            continue
        for name, value in vars(module).items():
            function = getattr(value, "__wrapped__", value)
            if inspect.isfunction(function) and function.__module__ == module.__name__ and takes_a_text(function):
                yield f"{module.__name__}.{name}", function


def asks_outside(module):
    """Return whether a module uses a database, a model or another machine."""
    origins = (getattr(value, "__module__", None) or getattr(value, "__name__", "") for value in vars(module).values())
    return any(str(origin).startswith(_OUTSIDE) for origin in origins)


def takes_a_text(function):
    parameters = inspect.signature(function).parameters.values()
    needed = [it for it in parameters if it.default is it.empty and it.kind not in (it.VAR_POSITIONAL, it.VAR_KEYWORD)]
    return len(needed) == 1 and needed[0].annotation in {str, "str"}


def linear(works):
    """Return the faults of some works by name: each tries other texts than the one before."""
    told = {
        name: faults(working(work), turn(RUNS, number, of=32), _fault)
        for number, (name, work) in enumerate(works.items())
    }
    return {name: found for name, found in told.items() if found}


def test_what_reads_texts_is_linear_on_hostile_ones():
    assert not linear(CALLS)


def test_what_reads_texts_does_not_copy_them_again_and_again():
    found = {}
    for number, (name, work) in enumerate(CALLS.items()):
        if told := faults(working(work), turn(LONG_RUNS, number, of=10), _fault_between):
            found[name] = told
    assert not found


def test_every_function_that_takes_one_text_is_linear_on_hostile_ones():
    taking = dict(functions())
    assert {
        "retrieval.text.quality.quality_of",
        "retrieval.graph.spans.key_of",
        "retrieval.text.fingerprints.minhash",
    } <= set(taking)
    assert not linear(taking)


@pytest.mark.parametrize("strategy", CHUNKED)
def test_chunking_is_linear_on_hostile_texts(strategy):
    # A text that fits one chunk says nothing of the cutting of longer ones.
    look = partial(_fault_between, shorter=20_000, longer=60_000)
    texts = turn(LONG_RUNS, list(CHUNKED).index(strategy), of=10)
    assert not faults(working(CHUNKED[strategy]), texts, look)


@pytest.mark.parametrize("name", CALLS)
def test_what_is_measured_reads_a_plain_text_without_a_fault(name):
    CALLS[name]('["a: b. c", "d"]')
