"""Whether two texts say the same: the words that they share, and those that change what is said. Pure."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from retrieval.text.simhash import Shingles, jaccard, shingles, words_after_words, words_of

#: Words that turn a sentence into its opposite; "t" is what is left of "don't".
_NEGATIONS: Final = frozenset({
    "not", "no", "never", "none", "nor", "without", "cannot", "t",
    "nicht", "kein", "keine", "keinen", "keinem", "keiner", "nie", "niemals", "ohne",
    "ne", "n", "pas", "jamais", "sans", "aucun", "aucune", "nunca", "sin", "ningún", "ninguna", "non", "mai", "senza",
})  # fmt: skip
#: Words up to this length are articles and the like; one in the place of another changes little.
_MAX_SMALL_WORD: Final = 3


def resemblance(one: "Words", other: "Words", minimum: float) -> float:
    """Return the Jaccard similarity of two texts' words, three in a row, when they say the same; else 0.

    They do when the similarity is at least `minimum` and they differ in no word that changes what is said: a number
    (the order of the numbers counts too), a negation, a name. One may have words that the other lacks; but where each
    has such words, longer than articles and the like, one thing replaces another.
    """
    if one.numbers != other.numbers:
        return 0.0
    similarity = jaccard(one.shingles, other.shingles)
    if similarity < minimum:
        return 0.0
    extra = [set(one.counts - other.counts), set(other.counts - one.counts)]
    is_replaced = all(any(len(word) > _MAX_SMALL_WORD for word in words) for words in extra)
    telling = _NEGATIONS | one.names | other.names
    return similarity if not is_replaced and telling.isdisjoint(extra[0] | extra[1]) else 0.0


@dataclass(frozen=True)
class Words:
    """A text's words; what a comparison needs of them is worked out when one asks for it."""

    text: str

    @cached_property
    def numbers(self) -> list[str]:
        """The numbers, and the words that hold a digit, in order."""
        return [word for word in self._words if any(map(str.isdigit, word))]

    @cached_property
    def shingles(self) -> Shingles:
        """Every three words in a row, case folded."""
        return shingles(self._folded)

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each word occurs in the text, case folded."""
        return Counter(self._folded)

    @cached_property
    def names(self) -> frozenset[str]:
        """The words that are capitalised right after another word, and identifiers; case folded.

        The first word of a sentence or line is none by its capital alone.
        """
        following = words_after_words(self.text)
        return frozenset(word.casefold() for word in self._words if _is_identifier(word) or word in following)

    @cached_property
    def _words(self) -> list[str]:
        return words_of(self.text)

    @cached_property
    def _folded(self) -> list[str]:
        return [word.casefold() for word in self._words]


def _is_identifier(word: str) -> bool:
    return "_" in word or any(map(str.isupper, word[1:]))
