"""Whether a leg found a chunk, and if not, why: the exact signals compared with the leg's query."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from retrieval.engine.state import SearchState, Span
from retrieval.engine.types import ChunkId, Hit, Ranking, ScoreType, Term
from retrieval.index.lexemes import any_of, rarest
from retrieval.index.types import Place
from retrieval.presets.preset import PresetConfig
from retrieval.records.lifeline.remedies import at_least, at_most, policy_at_most
from retrieval.records.lifeline.types import Evidence, Step, StepState
from retrieval.stages.dense import FILES
from retrieval.stages.fulltext import BY_INDEX

_MAX_WORDS: Final = 5  #: Words that a sentence lists; of more it says how many.
_FIELDS: Final[Mapping[str, str]] = {"A": "title", "B": "heading"}
_RELAXED: Final = "fulltext_relaxed"


@dataclass(frozen=True, slots=True)
class Look:
    """One chunk in the eyes of one leg."""

    span: Span
    chunk_id: ChunkId | None  #: None where the document has no chunk to speak of.
    state: SearchState
    config: PresetConfig
    evidence: Evidence

    @property
    def ranking(self) -> Ranking:
        """What the leg returned."""
        return self.state.rankings[self.span.stage]

    @property
    def rank(self) -> int | None:
        """The chunk's place in it, from 1; None where it is not there."""
        ids = (hit.chunk_id for hit in self.ranking)
        return next((rank for rank, chunk_id in enumerate(ids, start=1) if chunk_id == self.chunk_id), None)

    @property
    def place(self) -> Place | None:
        """The chunk's exact place in the whole scope, where it was counted."""
        return self.evidence.places.get(self.span.stage)

    @property
    def hit(self) -> Hit | None:
        """The chunk with its facts, exact signals and matches."""
        return self.evidence.chunks.get(self.chunk_id) if self.chunk_id else None

    @property
    def cosine(self) -> float | None:
        """The exact cosine."""
        return self.hit.signals.get(ScoreType.COSINE) if self.hit else None

    def has_note(self, code: str) -> bool:
        """Return whether the leg left this note."""
        return any(note.code == code for note in self.span.notes)


def leg_step(look: Look, *, found_elsewhere: bool) -> Step:
    """Return how a chunk came through a leg."""
    if rank := look.rank:
        found = _FOUND[look.span.stage](look) if look.span.stage in _FOUND else ()
        return Step(look.span.stage, StepState.PASSED, ", ".join((f"rank {rank} of {len(look.ranking):,}", *found)))
    if failure := _failure(look):
        state = StepState.DEGRADED if found_elsewhere else StepState.DROPPED
        return Step(look.span.stage, state, failure)
    missed = _MISSED[look.span.stage](look) if look.span.stage in _MISSED else None
    unknown = (f"not among the {len(look.ranking):,} that it returned", "")
    fact, remedy = _left_out(look) or missed or unknown
    state = StepState.MISSED if found_elsewhere else StepState.DROPPED
    return Step(look.span.stage, state, fact, remedy)


def asked_for(state: SearchState, config: PresetConfig) -> str:
    """Return the final tsquery of the full-text leg; empty without one."""
    codes = {note.code for span in state.trace for note in span.notes}
    if BY_INDEX in codes:
        return any_of(state.terms.terms)
    return any_of(_searched(state, config)) if _RELAXED in codes else state.terms.all_terms


def _searched(state: SearchState, config: PresetConfig) -> tuple[Term, ...]:
    return rarest(state.terms.terms, cap=config.fulltext.relax_cap)


def _left_out(look: Look) -> tuple[str, str] | None:
    """Return which condition of the request or its section left a chunk out of what was searched; None for none.

    Of those that the chunk's own facts decide.
    """
    kept, hit = look.state.filter, look.hit
    if hit is None or hit.facts is None:
        return None
    if kept.documents and hit.chunk_id.document_id not in kept.documents:
        return "not one of the requested documents", "Adding it to the filter would have included it."
    if kept.source_types and hit.facts.source_type not in kept.source_types:
        return f"of type {hit.facts.source_type}, which was not requested", ""
    if hit.facts.quality < kept.min_quality:
        minimum = math.floor(hit.facts.quality * 100) / 100
        remedy = policy_at_most(
            look.state, look.config, "quality_floor", minimum, "would have included it in the search"
        )
        return f"quality {hit.facts.quality:.2f}, below the minimum {kept.min_quality:.2f}", remedy
    return None


def _failure(look: Look) -> str:
    if look.span.stage == "dense" and look.state.vector is None:
        return "the query could not be embedded"
    text = next((note.text for note in look.span.notes if note.degraded), "")
    return f"{text[:1].lower()}{text[1:].rstrip('.')}"


def _found_fulltext(look: Look) -> tuple[str, ...]:
    if look.hit is None:
        return ()
    # The terms that it holds, with the field where that is not its text.
    named = [(_quoted(match.lexeme), _FIELDS.get(match.weight, "")) for match in look.hit.matches[:_MAX_WORDS]]
    held = ", ".join(f"{word} in the {place}" if place else word for word, place in named)
    lacking = _lacking(look)
    return (f"score {look.hit.signals['fulltext']:.3f}", held, *([f"not {_words(lacking)}"] if lacking else []))


def _missed_bm25(look: Look) -> tuple[str, str]:
    if look.hit is None or not look.hit.matches:
        return f"it contains none of {_words([term.lexeme for term in look.state.terms.terms])}", ""
    depth = len(look.ranking)
    minimum = f", the last one with score {look.ranking[-1].score:.2f}" if look.ranking else ""
    return f"it contains {_words(_held_lexemes(look))}; not among the {depth:,} results of this leg{minimum}", ""


def _held_lexemes(look: Look) -> list[str]:
    return [match.lexeme for match in look.hit.matches] if look.hit else []


def _missed_dense(look: Look) -> tuple[str, str]:
    if look.cosine is None:
        return "it has no vector in the searched index yet", "The next sync or index build adds its vector."
    depth, place = look.config.dense.depth, look.place
    if place is None:
        return f"cosine {look.cosine:.3f}, not in the window of {depth:,}", ""
    where = f"vector rank {place.rank:,} of {place.among:,}, cosine {look.cosine:.3f}, window {depth:,}"
    if place.rank > depth:
        return where, at_least(look.config, "dense.depth", place.rank, "would have included it")
    if look.has_note(FILES):
        return f"{where}; not among the candidates of the vector files", ""
    remedy = at_least(look.config, "dense.exact_below", look.state.terms.corpus_size + 1, "would have found it")
    return f"{where}; the approximate index missed it", remedy


def _missed_fulltext(look: Look) -> tuple[str, str]:
    if not look.state.terms.terms:
        return "the query has no searchable term", ""
    if look.hit is None or not look.hit.matches:
        return f"it contains none of {_words([term.lexeme for term in look.state.terms.terms])}", ""
    probe = look.evidence.probe.chunks.get(look.hit.chunk_id)
    return _in_part(look, look.hit) if probe and probe.is_match else _unmatched(look, look.hit)


def _in_part(look: Look, hit: Hit) -> tuple[str, str]:
    score, place, depth = hit.signals["fulltext"], look.place, look.config.fulltext.depth
    if place is None:
        return f"score {score:.3f}, not in the window of {depth:,}", ""
    where = f"full-text rank {place.rank:,} of {place.among:,}, score {score:.3f}, window {depth:,}"
    if look.has_note("fulltext_capped"):
        remedy = at_least(look.config, "fulltext.max_matches", place.among, "would have scored every match")
        return f"{where}; only some of the matches were scored", remedy
    if place.rank > depth:
        return where, at_least(look.config, "fulltext.depth", place.rank, "would have included it")
    return f"{where}; not among the candidates of the BM25 index" if look.has_note(BY_INDEX) else where, ""


def _unmatched(look: Look, hit: Hit) -> tuple[str, str]:
    score = f"score {hit.signals['fulltext']:.3f}"
    if look.place:
        score += f", rank {look.place.rank:,} of {look.place.among:,} by it"
    held = f"it contains {_words([match.lexeme for match in hit.matches])} ({score})"
    if look.state.terms.has_operators:
        return (
            f"{held}, but does not match the query's operators",
            "Without quotes, minus and OR, any term would match.",
        )
    if look.config.fulltext.cover_density:
        remedy = at_most(look.config, "fulltext.cover_density", 0, "would have matched any of the rarest terms")
        return f"{held}, not {_words(_lacking(look))}; every term is required", remedy
    if look.has_note(_RELAXED):
        searched = _words([term.lexeme for term in _searched(look.state, look.config)])
        lexemes, cap = {match.lexeme for match in hit.matches}, 0
        # The rarest of the held terms is searched for under this cap on summed frequencies.
        for term in look.state.terms.terms:
            cap += term.document_frequency
            if term.lexeme in lexemes:
                break
        remedy = at_least(look.config, "fulltext.relax_cap", cap, "would have searched for these terms too")
        return f"{held}, too common to search for; searched for {searched}", remedy
    enough = len(look.ranking) + 1
    remedy = at_least(look.config, "fulltext.relax_below", enough, "would have matched any of the rarest terms")
    return f"{held}, not {_words(_lacking(look))}; enough chunks contain every term", remedy


def _lacking(look: Look) -> list[str]:
    held = set(_held_lexemes(look))
    return [term.lexeme for term in look.state.terms.terms if term.lexeme not in held]


def _words(lexemes: Sequence[str]) -> str:
    shown = ", ".join(map(_quoted, lexemes[:_MAX_WORDS]))
    rest = len(lexemes) - _MAX_WORDS
    return f"{shown} and {rest} more" if rest > 0 else shown


def _quoted(lexeme: str) -> str:
    return f"\N{LEFT DOUBLE QUOTATION MARK}{lexeme}\N{RIGHT DOUBLE QUOTATION MARK}"


_FOUND: Final[Mapping[str, Callable[[Look], tuple[str, ...]]]] = {
    "dense": lambda look: () if look.cosine is None else (f"cosine {look.cosine:.3f}",),
    "fulltext": _found_fulltext,
    "bm25": lambda look: tuple(f"score {hit.score:.2f}" for hit in look.ranking if hit.chunk_id == look.chunk_id),
}
_MISSED: Final[Mapping[str, Callable[[Look], tuple[str, str]]]] = {
    "dense": _missed_dense,
    "fulltext": _missed_fulltext,
    "bm25": _missed_bm25,
}
