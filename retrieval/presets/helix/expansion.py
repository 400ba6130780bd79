"""Lifting hits by names in the question and by links. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from retrieval.engine.tunables import Tunables, costly, fraction, tunable
from retrieval.engine.types import ChunkId, Hit, Lift, Ranking, ScoreType, Term
from retrieval.graph.links import Edge
from retrieval.graph.question import NamedDocument
from retrieval.graph.spans import words_of
from retrieval.presets.helix.walk import Step, best_steps, pagerank, relation_match, seated, traverse
from retrieval.ranking.signals import SEAT

NAMED: Final = "named"
_NAMED_LIFT: Final = 1.0  #: Lift of a named document, on top of its fused score of 0 to 1.
_MIN_SENTENCE: Final = 0.5  #: Weight of a link whose sentence has no other word of the question.
_STEM_LETTERS: Final = 4  #: Shorter words and lexemes match only if equal.
_SEAT_STEP: Final = 1e-3  #: Minimum score distance of reserved slots.
#: The best link of each pair of documents, after its evidence for this question.
_Ways = Mapping[tuple[UUID, UUID], tuple[float, Edge]]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphConfig(Tunables, label="Links"):
    """How links raise the scores of hits."""

    named: int = tunable(
        4, low=0, high=20, unit="documents", help="Documents named in the question that get a reserved rank."
    )
    seat_share: float = fraction(
        0.35,
        help="A named document needs at least this cosine for its reserved rank: the share of the way from the mean of "
        "the scope to the best hit. With 0 it needs none.",
    )
    top_seeds: int = tunable(3, low=0, high=20, unit="hits", help="Number of top hits whose links are followed.")
    seed_weight: float = fraction(0.8, help="Weight of the best hit as a seed; a named document weighs 1.")
    seed_chunks: int = costly(
        8, low=1, high=1000, unit="chunks", help="Maximum number of seed chunks that are read for names, best first."
    )
    bridges: int = tunable(8, low=0, high=100, unit="links", help="Maximum links followed from one seed, best first.")
    hops: int = costly(1, low=0, high=2, unit="hops", help="Number of links followed one after another.")
    max_edges: int = costly(
        2000, low=10, high=20_000, unit="links", help="Maximum number of links that one search reads."
    )
    damping: float = tunable(
        0.5,
        low=0.0,
        high=0.99,
        help="Damping factor of PageRank: share of the mass that follows links instead of restarting.",
    )
    hub_links: int = tunable(
        10,
        low=1,
        high=10_000,
        unit="links",
        help="A document linked from more documents than this, and from more than graph.hub_share, is a hub.",
    )
    hub_share: float = fraction(0.005, help="Share of the documents in scope that must link to a hub.")
    max_mass: float = tunable(
        1.0, low=0.0, high=2.0, help="Maximum that links add to a hit's score, which is 0 to 1 without them."
    )
    next_share: float = fraction(
        0.0, help="Share of a best hit's score that goes to the chunks next to it in its section."
    )
    section_share: float = fraction(0.0, help="Share of a best hit's score that goes to the rest of its section.")

    def hub_of(self, chunks: int) -> int:
        """Return the number of mentions above which a name hardly means one document, of so many chunks in scope."""
        return max(self.hub_links, int(self.hub_share * chunks))


@dataclass(frozen=True, slots=True)
class Entry:
    """The chunk by which a document enters the pool, and its similarity to the rest of the question."""

    chunk: ChunkId
    z: float  #: In standard deviations above the scope's mean.
    cosine: float


@dataclass(frozen=True, slots=True)
class Expansion:
    """The input for lifting hits."""

    scores: Mapping[ChunkId, float]  #: Fused score of 0 to 1 of every chunk in the pool.
    named: Sequence[NamedDocument] = ()
    seeds: Mapping[UUID, float] = field(default_factory=dict)
    edges: Sequence[Edge] = ()
    entries: Mapping[UUID, Entry] = field(default_factory=dict)
    cosines: Mapping[UUID, float] = field(default_factory=dict)  #: Each document's best cosine with the question.
    mean_cosine: float | None = None  #: The scope's; None for the lowest of `cosines`.
    terms: Sequence[Term] = ()
    neighbours: Mapping[ChunkId, Lift] = field(default_factory=dict)
    is_cut: bool = False  #: The subgraph reached the row limit: it is traversed breadth-first.


def seeds_of(scores: Mapping[ChunkId, float], named: Sequence[NamedDocument], config: GraphConfig) -> dict[UUID, float]:
    """Return the documents whose links are followed, with weights: 1 for named ones, less for the best hits."""
    seeds = {name.document_id: 1.0 for name in named}
    ranked = sorted(document_scores(scores.items()).items(), key=lambda it: (-it[1], it[0]))
    for document, score in ranked[: config.top_seeds]:
        seeds.setdefault(document, config.seed_weight * score / (ranked[0][1] or 1.0))
    return seeds


def document_scores(scores: Iterable[tuple[ChunkId, float]]) -> dict[UUID, float]:
    """Return each document's best score."""
    best: dict[UUID, float] = {}
    for chunk, score in scores:
        if score >= best.setdefault(chunk.document_id, 0.0):
            best[chunk.document_id] = score
    return best


def lifted(hits: Ranking, given: Expansion, config: GraphConfig) -> Ranking:
    """Return the pool with lifted hits and those that links add, best first.

    f = s + [named] + b: the fused score, 1 if the question names the document, and the PageRank mass of the links.
    Reserved slots rank first: the named documents and the best bridge of each. A named document that is not itself
    similar to the question has none, and its links count for nothing.
    """
    given = _with_evidence(given, config)
    ways = _ways(given)
    steps = best_steps((Step(*pair, evidence) for pair, (evidence, _) in ways.items()), limit=config.bridges)
    if given.is_cut:
        brought = traverse(given.seeds, steps, hops=config.hops, limit=config.max_mass)
    else:
        brought = pagerank(given.seeds, steps, damping=config.damping, limit=config.max_mass)
    lifts = _lifts(given, ways, steps, brought)
    pool = {hit.chunk_id: _scored(hit, given.scores.get(hit.chunk_id, 0.0)) for hit in hits}
    by_document: dict[UUID, list[Hit]] = defaultdict(list)
    for hit in pool.values():
        by_document[hit.chunk_id.document_id].append(hit)
    for document, reasons in lifts.items():
        # A document is lifted by its best hit in the pool, else by a new one.
        if pooled := by_document.get(document):
            best = min(pooled, key=lambda hit: (-hit.score, hit.chunk_id))
        elif entry := given.entries.get(document):
            signals = {"cosine": entry.cosine}
            best = Hit(entry.chunk, 0.0, ScoreType.BLEND, signals=signals, contributions={"fused": 0.0})
        else:
            continue
        pool[best.chunk_id] = _raised(best, reasons)
    for chunk_id, lift in given.neighbours.items():
        pool[chunk_id] = _raised(pool.get(chunk_id, _scored(Hit(chunk_id, 0.0, ScoreType.BLEND), 0.0)), (lift,))
    return _in_order(list(pool.values()), seated([it.document_id for it in given.named], steps))


def sentence_match(sentence: str, terms: Sequence[Term]) -> float:
    """Return the idf-weighted share of the terms in a sentence, 0 to 1."""
    total = sum(term.idf for term in terms)
    if not total:
        return 0.0
    forms = {word.form for word in words_of(sentence)}
    stems = {form[:length] for form in forms for length in range(_STEM_LETTERS, len(form) + 1)}

    def is_held(lexeme: str) -> bool:
        return lexeme in forms or lexeme[: max(_STEM_LETTERS, len(lexeme) - 1)] in stems

    return sum(term.idf for term in terms if is_held(term.lexeme)) / total


def min_cosine(cosines: Collection[float], mean: float | None, share: float) -> float:
    """Return the cosine at `share` of the way from the scope's mean, else from the lowest, to the best."""
    low = min(cosines, default=0.0) if mean is None else mean
    return low + share * (max(cosines, default=0.0) - low)


def _with_evidence(given: Expansion, config: GraphConfig) -> Expansion:
    if not config.seat_share:
        return given
    floor = min_cosine(given.cosines.values(), given.mean_cosine, config.seat_share)
    named = [it for it in given.named if given.cosines.get(it.document_id, -1.0) >= floor]
    without = {it.document_id for it in given.named} - {it.document_id for it in named}
    seeds = {document: weight for document, weight in given.seeds.items() if document not in without}
    return replace(given, named=named, seeds=seeds)


def _ways(given: Expansion) -> _Ways:
    best: dict[tuple[UUID, UUID], tuple[float, Edge]] = {}
    # Several links come from one sentence.
    sentences = {edge.sentence for edge in given.edges if edge.target in given.entries}
    matches = {sentence: sentence_match(sentence, given.terms) for sentence in sentences}
    for edge in given.edges:
        entry = given.entries.get(edge.target)
        if entry is None:
            continue
        said = _MIN_SENTENCE + (1.0 - _MIN_SENTENCE) * matches[edge.sentence]
        pair = (edge.source.document_id, edge.target)
        evidence = edge.weight * relation_match(entry.z) * said
        if pair not in best or best[pair][0] <= evidence:
            best[pair] = evidence, edge
    return best


def _lifts(
    given: Expansion, ways: _Ways, steps: Sequence[Step], brought: Mapping[UUID, float]
) -> dict[UUID, tuple[Lift, ...]]:
    lifts: dict[UUID, list[Lift]] = defaultdict(list)
    for name in given.named:
        lifts[name.document_id].append(Lift(NAMED, _NAMED_LIFT, name.name))
    incoming: dict[UUID, list[Step]] = defaultdict(list)
    for step in steps:
        incoming[step.target].append(step)
    for document, amount in brought.items():
        total = sum(step.evidence for step in incoming[document]) or 1.0
        for step in incoming[document]:
            _, edge = ways[step.source, step.target]
            part = amount * step.evidence / total
            lifts[document].append(Lift(edge.kind, part, edge.name, edge.source, edge.sentence))
    return {document: tuple(sorted(found, key=lambda it: -it.amount)) for document, found in lifts.items()}


def _scored(hit: Hit, score: float) -> Hit:
    return hit.scored(score, ScoreType.BLEND, {"fused": score})


def _raised(hit: Hit, lifts: tuple[Lift, ...]) -> Hit:
    amount = sum(lift.amount for lift in lifts)
    total = amount + hit.contributions.get("graph", 0.0)
    return replace(
        hit,
        score=hit.score + amount,
        signals={**hit.signals, "graph": min(1.0, total)},
        contributions={**hit.contributions, "graph": total},
        lifts=(*hit.lifts, *lifts),
    )


def _in_order(hits: Sequence[Hit], seats: Sequence[UUID]) -> Ranking:
    place = {document: number for number, document in enumerate(seats)}
    sitting: dict[UUID, Hit] = {}
    for hit in sorted(hits, key=lambda it: (-it.score, it.chunk_id)):
        document = hit.chunk_id.document_id
        if document in place and document not in sitting:
            sitting[document] = hit
    seated_chunks = {hit.chunk_id for hit in sitting.values()}
    rest = sorted((it for it in hits if it.chunk_id not in seated_chunks), key=lambda it: (-it.score, it.chunk_id))
    below = rest[0].score if rest else 0.0
    front: list[Hit] = []
    for hit in sorted(sitting.values(), key=lambda it: place[it.chunk_id.document_id], reverse=True):
        gain = max(0.0, below + _SEAT_STEP - hit.score)
        contributions = {**hit.contributions, SEAT: gain} if gain else hit.contributions
        signals = {**hit.signals, SEAT: float(len(sitting) - len(front))}
        front.append(replace(hit, score=hit.score + gain, signals=signals, contributions=contributions))
        below = front[-1].score
    return (*reversed(front), *rest)
