"""Signals of a finished search that its passages hold an answer: raw values, never RRF. Pure.

A signal that cannot be computed is absent: a question without a name has no `entity_coverage`.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import fmean, pstdev
from typing import Final

from retrieval.engine.types import NOISE, Passage, QueryTerms, Ranking, RunCosines, ScoreType, Term
from retrieval.engine.words import stemmer
from retrieval.ranking.answerability.model import RERANK, SENTENCE_COSINE
from retrieval.text.language import question_language

_WORD: Final = re.compile(r"[^\W_]+")
_QUOTED: Final = re.compile(r"[\"“«„]([^\"“”«»„]+)[\"”»“]")
_SENTENCE_START: Final = re.compile(r"(?:\A|[.!?…:]\s)[\s\"“«„'(\[¿¡]*+\Z")
#: What may occur between two words of one name.
_JOINING: Final = re.compile(
    r"[ \-'’.&]{1,2}\Z|(?: (?:of|de|da|del|della|di|du|la|le|van|von|der|den|and|the)){1,2} \Z"  # noqa: RUF001 -- a typographic apostrophe
)
_LOOK_BACK_CHARACTERS: Final = 64  #: Blanks and quotation marks before a word are read so far back.
_MAX_INITIALISM_LENGTH: Final = 6
#: Negations; stop words in full text, so that they have no lexeme. "t" is what is left of "isn't".
_DENIALS: Final[Mapping[str, frozenset[str]]] = {
    "english": frozenset({"not", "never", "no", "nor", "neither", "without", "cannot", "t"}),
    "german": frozenset({"nicht", "nie", "niemals", "kein", "keine", "keinen", "keiner", "ohne"}),
    "french": frozenset({"ne", "n", "pas", "jamais", "aucun", "aucune", "sans"}),
    "spanish": frozenset({"no", "nunca", "jamás", "ningún", "ninguna", "sin"}),
}

#: Words that questions are made with, whatever they are about: that no document has them means nothing.
_ASKING: Final[Mapping[str, str]] = {
    "english": "many much long often mean means happen need get give tell find know want please anybody anyone",
    "german": "viele viel lange oft bedeutet heißt geschieht brauche bekomme gibt darf dürfen finde weiß bitte jemand",
    "french": "combien longtemps souvent signifie veut dire arrive besoin obtenir trouver savoir veux quelqu",
    "spanish": "cuántos cuánto tiempo menudo significa pasa necesito obtener encontrar saber quiero favor alguien",
}

Entity = frozenset[str]  #: The lexemes of one name, all of them terms of the query.
_RIVALS: Final = 5  #: Sentences that the best one is compared with: several may answer.
_MAX_LEAD: Final = 8.0  #: Few questions have a larger lead, but those over a handful of sentences.
_TOP: Final = 10  #: Places of each leg that are compared.
_MIN_OTHERS: Final = 10  #: With fewer other hits than this a leg gives no lead.
_MIN_SPREAD: Final = 1e-6
Lexemes = frozenset[str]


def entities(question: str, *, known: frozenset[str], stem: Callable[[str], str]) -> tuple[Entity, ...]:
    """Return the names in a question as sets of its `known` lexemes: quoted phrases and capitalised words.

    A capitalised word that begins a sentence is none, unless it is written in capitals; neither is a German noun, nor
    anything in a question without a small letter.
    """
    if question.upper() == question:
        return ()
    phrases = [match.group(1) for match in _QUOTED.finditer(question)]
    found = (
        frozenset(stem(word.lower()) for word in _WORD.findall(phrase)) & known
        for phrase in (*phrases, *_names(question))
    )
    return tuple(dict.fromkeys(entity for entity in found if entity))


def denials(text_search_config: str) -> frozenset[str]:
    """Return the negations of a text search configuration's language; none where they are not known."""
    return _DENIALS.get(text_search_config, frozenset())


def denial(text: str, words: frozenset[str]) -> bool:
    """Return whether a text contains a negation."""
    return bool(words) and any(word.lower() in words for word in _WORD.findall(text))


def unknown_terms(terms: QueryTerms) -> tuple[Term, ...]:
    """Return the terms that no document in scope contains, without the words that questions are made with."""
    return tuple(it for it in terms.terms if not it.document_frequency and it.lexeme not in _asking_lexemes())


@cache
def _asking_lexemes() -> frozenset[str]:
    return frozenset(stemmer(language)(word) for language, words in _ASKING.items() for word in words.split())


def numbers(lexemes: frozenset[str]) -> frozenset[str]:
    """Return the lexemes with a digit in them: numbers, years, codes."""
    return frozenset(lexeme for lexeme in lexemes if any(sign.isdigit() for sign in lexeme))


def _names(question: str) -> Iterator[str]:
    run: list[re.Match[str]] = []
    are_nouns_capitalised = question_language(question) == "german"
    for word in _WORD.finditer(question):
        is_name = _is_initialism(word[0]) or (not are_nouns_capitalised and _is_capitalised(question, word))
        if not is_name:
            continue
        if run and not _JOINING.match(question[run[-1].end() : word.start()]):
            yield question[run[0].start() : run[-1].end()]
            run = []
        run.append(word)
    if run:
        yield question[run[0].start() : run[-1].end()]


def _is_initialism(word: str) -> bool:
    return 1 < len(word) <= _MAX_INITIALISM_LENGTH and word[0].isupper() and word.isupper()


def _is_capitalised(question: str, word: re.Match[str]) -> bool:
    """Return whether a word begins with a capital inside a sentence."""
    if not word[0][0].isupper() or word[0] == "I":
        return False
    before = question[max(0, word.start() - _LOOK_BACK_CHARACTERS) : word.start()]
    return not _SENTENCE_START.search(before)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, list item, table row or the like that could be quoted, and the share of the question's idf in it."""

    text: str
    own: float  #: By itself, 0 to 1.
    with_previous: float  #: Together with the sentence before it, to which its pronouns may refer.
    with_title: float  #: Together with its document's title and headings.
    score: float  #: Its log-odds by its words, by which quotes are ordered.


@dataclass(frozen=True)
class Evidence:
    """What the signals are read from."""

    question: str
    terms: QueryTerms
    rankings: Mapping[str, Ranking]
    passages: tuple[Passage, ...]
    language_of: Callable[[Passage], str]  #: The text search configuration that a passage was indexed with.

    @property
    def language(self) -> str:
        """The first passage's text search configuration, in which the question is taken to be; expects a passage."""
        return self.language_of(self.passages[0])

    @cached_property
    def total(self) -> float:
        """The idf of all terms together."""
        return math.fsum(term.idf for term in self.terms.terms)

    def share(self, lexemes: Iterable[str]) -> float:
        """Return the share of the question's idf that some of its lexemes have, 0 to 1; expects a total above 0."""
        held = frozenset(lexemes)
        return math.fsum(term.idf for term in self.terms.terms if term.lexeme in held) / self.total

    def held(self) -> list[Lexemes]:
        """Return the lexemes of the question that each passage holds, as PostgreSQL matched them."""
        return [frozenset(match.lexeme for match in passage.hit.matches) for passage in self.passages]


def read_signals(evidence: Evidence, sentences: Sequence[Sentence]) -> dict[str, float]:
    """Return every signal but the sentences' cosine, by name. Shares and coverages lie between 0 and 1."""
    return {
        **_coverage(evidence),
        **_sentences(evidence, sentences),
        **_cosines(evidence),
        **_named(evidence),
        **_agreement(evidence.rankings),
        **_rerank(evidence.passages),
    }


def sentence_cosine(cosines: RunCosines) -> dict[str, float]:
    """Return the best cosine of what could be quoted; nothing where none is known."""
    found = [cosine for runs in cosines.values() for cosine in runs.values()]
    return {SENTENCE_COSINE: max(found)} if found else {}


def _coverage(evidence: Evidence) -> dict[str, float]:
    if not evidence.total or not evidence.passages:
        return {}
    held = evidence.held()
    # Not the full-text signal: that can be a cover density, which is on no scale.
    best_fulltext = max(sum(match.share for match in passage.hit.matches) for passage in evidence.passages)
    return {
        "coverage_passage": max(map(evidence.share, held)),
        "coverage_context": evidence.share(frozenset[str]().union(*held)),
        "fulltext_share": best_fulltext / evidence.total,
        "unknown_share": evidence.share(it.lexeme for it in unknown_terms(evidence.terms)),
    }


def _sentences(evidence: Evidence, sentences: Sequence[Sentence]) -> dict[str, float]:
    """Return the best coverage, how far the best sentences stand out, and whether a denial is missing.

    `sentence_lead` is how far the best coverage by itself is over the mean of the next five, `quote_lead` how far the
    best log-odds are over the sixth ones, at most 8, and 0 where none holds a term of the question: of a question that
    is not answered many sentences hold about as much.
    """
    if not sentences:
        return {}
    best, *others = sorted(sentences, key=lambda sentence: -sentence.own)
    words = denials(evidence.language)
    denies = denial(evidence.question, words) and not denial(best.text, words)
    rivals = [sentence.own for sentence in others[:_RIVALS]]
    is_held = any(sentence.with_title for sentence in sentences)
    scores = sorted((sentence.score for sentence in sentences), reverse=True)[: _RIVALS + 1]
    return {
        "coverage_sentence": max(sentence.with_previous for sentence in sentences),
        "sentence_lead": best.own - fmean(rivals) if rivals else 0.0,
        "denial_unmatched": float(denies),
        **({"quote_lead": min(scores[0] - scores[-1], _MAX_LEAD) if is_held else 0.0} if others else {}),
    }


def _cosines(evidence: Evidence) -> dict[str, float]:
    """Return the passages' best cosine, and how far the vector leg's best is above the rest of its ranking.

    The first leaves out hits of another index, by another model; the second is in standard deviations of the rest.
    """
    own = (passage.hit.signals for passage in evidence.passages if NOISE not in passage.hit.signals)
    found = [signals["cosine"] for signals in own if "cosine" in signals]
    signals = {"cosine_best": max(found)} if found else {}
    if len(ranking := evidence.rankings.get("dense", ())) > _MIN_OTHERS:
        best, *others = (hit.score for hit in ranking)
        signals["cosine_lead"] = (best - fmean(others)) / max(pstdev(others), _MIN_SPREAD)
    return signals


def _named(evidence: Evidence) -> dict[str, float]:
    known = frozenset(term.lexeme for term in evidence.terms.terms)
    held = evidence.held()
    named = entities(evidence.question, known=known, stem=stemmer(evidence.language)) if held else ()
    counted = tuple(frozenset({number}) for number in sorted(numbers(known)))
    return {**_held_of("entity_coverage", named, held[:1]), **_held_of("number_coverage", counted, held)}


def _held_of(signal: str, wanted: Sequence[Entity], held: Sequence[Lexemes]) -> dict[str, float]:
    if not wanted or not held:
        return {}
    return {signal: max(fmean(len(it & passage) / len(it) for it in wanted) for passage in held)}


def _agreement(rankings: Mapping[str, Ranking]) -> dict[str, float]:
    """Return how far the legs for vectors and words agree: shared places in their top 10, each one's best in the other.

    The second is the mean of two reciprocal ranks, 0 for a best hit that the other leg does not have.
    """
    of_words = rankings.get("fulltext") or rankings.get("bm25", ())
    dense, words = (tuple(hit.chunk_id for hit in ranking) for ranking in (rankings.get("dense", ()), of_words))
    if not dense or not words:
        return {}
    shared = len(frozenset(dense[:_TOP]) & frozenset(words[:_TOP]))
    ranks = (
        1 / (other.index(own[0]) + 1) if own[0] in other else 0.0 for own, other in ((dense, words), (words, dense))
    )
    return {"leg_overlap": shared / _TOP, "leg_agreement": fmean(ranks)}


def _rerank(passages: Sequence[Passage]) -> dict[str, float]:
    best: dict[ScoreType, float] = {}
    for hit in (passage.hit for passage in passages):
        if "rerank" in hit.signals:
            best[hit.score_type] = max(best.get(hit.score_type, -math.inf), hit.signals["rerank"])
    return {f"{RERANK}{score_type}": score for score_type, score in best.items()}
