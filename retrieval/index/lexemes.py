"""From the rows of `analyze.sql` to the query's terms, and tsqueries made of lexemes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

from retrieval.engine.types import Correction, CountTokens, QueryTerms, Term
from retrieval.engine.words import stemmer
from retrieval.ranking.blend import idf
from retrieval.text.compounds import has_compounds, joined, parts
from retrieval.text.language import common_words
from retrieval.text.misspellings import Near, near_words, plain_words

_MAX_CORRECTED: Final = 5  #: Words of a query that are compared with others.


@dataclass(frozen=True, slots=True)
class NearWord:
    """A word that a word of the query may be meant as."""

    typed: str
    size: int  #: Tokens of the typed word.
    meant: str
    lexeme: str  #: That of what is meant.
    how: Near

    @property
    def doubt(self) -> int:
        """How many tokens less it must have, 0 to 2."""
        return self.how.doubt or int(self.how.place >= len(self.lexeme))


def query_terms(
    rows: Sequence[Mapping[str, Any]], *, operators: str, languages: Sequence[str], asked_in: str
) -> QueryTerms:
    """Return the terms of all languages, rarest first, and the tsquery that demands them.

    Each of the `languages` reads the whole query, so the tsquery matches what one of them requires. `asked_in` is the
    language that the query seems to be in, of any; empty in doubt.
    """
    size = next(row["chunks"] for row in rows if not row["lexeme"])
    found = [row for row in rows if row["lexeme"]]
    known = {language: sum(row["chunks"] > 0 for row in found if row["language"] == language) for language in languages}
    language = asked_in if asked_in in known else max(languages, key=lambda it: known[it])
    terms = _terms(found, size, languages=frozenset(languages), asked_in=asked_in)
    by_language: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in found:
        by_language[row["language"]].append(row)
    rarest = {
        " & ".join(quoted(row["lexeme"]) for row in rows): min(row["chunks"] for row in rows)
        for rows in by_language.values()
    }
    at_most = min(sum(rarest.values()), size)
    if not operators:
        return QueryTerms(terms, size, _any(rarest), at_most=at_most, language=language)
    as_written = {rows[0]["as_written"] for rows in by_language.values() if rows[0]["is_indexable"]}
    if any("|" in tsquery for tsquery in as_written):
        at_most = min(sum(term.document_frequency for term in terms), size)
    return QueryTerms(terms, size, _any(as_written), has_operators=True, at_most=at_most, language=language)


def possible_compounds(terms: QueryTerms) -> frozenset[str]:
    """Return the lexemes whose counts `with_compounds` needs."""
    found = set[str]()
    for term in _unknown(terms):
        found.update(chain.from_iterable(parts(term.lexeme, terms.language)))
        found.update(_joined(term, terms))
    return frozenset(found)


def with_compounds(terms: QueryTerms, counts: Mapping[str, int]) -> QueryTerms:
    """Return terms with others in the place of those that occur nowhere, by the counts of lexemes in scope.

    "Zuschlag" beside "Überstunden" becomes "Überstundenzuschlag", or else "Urlaubstage" becomes "Urlaub" and "Tage",
    where these occur.
    """
    places = {term.lexeme: term for term in terms.terms}
    added = set[str]()
    for term in _unknown(terms):
        pairs = [pair for pair in parts(term.lexeme, terms.language) if all(map(counts.get, pair))]
        if found := [it for it in _joined(term, terms) if counts.get(it)] or [*chain.from_iterable(pairs[:1])]:
            del places[term.lexeme]
            new = (Term(it, counts[it], idf(counts[it], terms.corpus_size), term.place) for it in found)
            places = {**{it.lexeme: it for it in new}, **places}
            added.update(found)
    known = tuple(sorted(places.values(), key=lambda term: (term.document_frequency, term.lexeme)))
    return replace(terms, terms=known, compounds=frozenset(added))


def _unknown(terms: QueryTerms) -> list[Term]:
    return [term for term in terms.terms if not term.document_frequency and has_compounds(terms.language)]


def _joined(term: Term, terms: QueryTerms) -> Iterator[str]:
    others = (other for other in terms.terms if other is not term)
    return chain.from_iterable(joined(term.lexeme, other.lexeme, terms.language) for other in others)


def possible_corrections(text: str, terms: QueryTerms, count_tokens: CountTokens) -> tuple[NearWord, ...]:
    """Return the words near each word that occurs nowhere; `likely_corrections` needs the counts of their lexemes.

    A word that is one token of the embedding model is a common one, spelled as it is meant.
    """
    stem, common = stemmer(terms.language), common_words(terms.language)
    unknown = {term.lexeme for term in terms.terms if not term.document_frequency}
    found = dict.fromkeys(word[0] for word in plain_words(text)) if unknown else ()
    words = [word for word in found if stem(word) in unknown and word not in common]
    sizes = zip(words, count_tokens(words) if words else (), strict=True)
    rare = [(word, size) for word, size in sizes if size > 1][:_MAX_CORRECTED]
    return tuple(
        NearWord(word, size, it, lexeme, how)
        for word, size in rare
        for it, how in near_words(word, terms.language).items()
        if (lexeme := stem(it)) != stem(word)
    )


def likely_corrections(
    near: Sequence[NearWord], terms: QueryTerms, counts: Mapping[str, int], count_tokens: CountTokens
) -> dict[Correction, str]:
    """Return what each word may be meant as, likeliest first, with its lexeme, by the counts of lexemes in scope.

    These are the most common words of the language, and words that are simpler by as many tokens as their letter leaves
    in doubt: "dividend" is not "divided", but "grindr" is "grinder". In a word's ending any letter is in doubt.
    """
    common = common_words(terms.language)
    known = [it for it in near if counts.get(it.lexeme) or it.meant in common]
    sizes = count_tokens([it.meant for it in known]) if known else ()
    ranked = sorted(
        (it.typed, it.meant not in common, size, -counts.get(it.lexeme, 0), it.meant, it.lexeme)
        for it, size in zip(known, sizes, strict=True)
        if it.meant in common or size + it.doubt <= it.size
    )
    return {Correction(typed, meant): lexeme for typed, *_, meant, lexeme in ranked}


def any_of(terms: Iterable[Term]) -> str:
    """Return the tsquery that is met by any of the terms."""
    return " | ".join(quoted(term.lexeme) for term in terms)


def rarest(terms: Sequence[Term], *, cap: int) -> tuple[Term, ...]:
    """Return the rarest terms that occur anywhere, while their summed document frequency is at most `cap`.

    The rarest one is always included. Expects the terms rarest first.
    """
    chosen: list[Term] = []
    total = 0
    for term in terms:
        total += term.document_frequency
        if chosen and total > cap:
            break
        if term.document_frequency:
            chosen.append(term)
    return tuple(chosen)


def quoted(lexeme: str) -> str:
    """Return a lexeme as a tsquery of itself."""
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _terms(
    rows: Iterable[Mapping[str, Any]], size: int, *, languages: frozenset[str], asked_in: str
) -> tuple[Term, ...]:
    """Return one term for each lexeme, rarest first, without readings of a word that only another language has.

    Neither is a stop word of the question's language a term, nor one of any language that occurs nowhere: "wie" has a
    lexeme in English.
    """
    places: dict[str, int] = {}
    counts: dict[str, int] = {}
    readings: dict[int, list[str]] = defaultdict(list)
    readers: dict[int, set[str]] = defaultdict(set)
    for row in rows:
        lexeme = row["lexeme"]
        counts[lexeme] = row["chunks"]
        places[lexeme] = min(row["places"][0], places.get(lexeme, row["places"][0]))
        for place in row["places"]:
            readings[place].append(lexeme)
            readers[place].add(row["language"])
    known = set[str]()
    for place, lexemes in readings.items():
        # Of the readings of one word those that occur in scope; if none does, the first.
        held = [it for it in lexemes if counts[it]]
        is_stop_word = readers[place] != languages or not common_words(asked_in).isdisjoint(lexemes)
        if asked_in in languages - readers[place] or (is_stop_word and not held):
            continue
        known.update(held or [min(lexemes)])
    terms = (Term(lexeme, counts[lexeme], idf(counts[lexeme], size), places[lexeme]) for lexeme in known)
    return tuple(sorted(terms, key=lambda term: (term.document_frequency, term.lexeme)))


def _any(tsqueries: Iterable[str]) -> str:
    alternatives = sorted(tsqueries)
    return alternatives[0] if len(alternatives) == 1 else " | ".join(f"({it})" for it in alternatives)
