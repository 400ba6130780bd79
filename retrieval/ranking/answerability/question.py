"""What a question names and denies: its entities and numbers as lexemes, its words like "not". Pure."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+")
_QUOTED: Final = re.compile(r"[\"“«„]([^\"“”«»„]+)[\"”»“]")
_SENTENCE_START: Final = re.compile(r"(?:\A|[.!?…:]\s)[\s\"“«„'(\[¿¡]*+\Z")
#: What may stand between two words of one name.
_JOINING: Final = re.compile(
    r"[ \-'’.&]{1,2}\Z|(?: (?:of|de|da|del|della|di|du|la|le|van|von|der|den|and|the)){1,2} \Z"  # noqa: RUF001 -- a typographic apostrophe
)
#: Blanks and quotation marks before a word are read so far back.
_LOOK_BACK_CHARACTERS: Final = 64
_MAX_INITIALISM_LENGTH: Final = 6
#: Words that deny; stop words to full text, so that no lexeme tells of them. "t" is what is left of "isn't".
_DENIALS: Final[Mapping[str, frozenset[str]]] = {
    "english": frozenset({"not", "never", "no", "nor", "neither", "without", "cannot", "t"}),
    "german": frozenset({"nicht", "nie", "niemals", "kein", "keine", "keinen", "keiner", "ohne"}),
    "french": frozenset({"ne", "n", "pas", "jamais", "aucun", "aucune", "sans"}),
    "spanish": frozenset({"no", "nunca", "jamás", "ningún", "ninguna", "sin"}),
}

#: The lexemes of one name, all of them terms of the query.
Entity = frozenset[str]


def entities(question: str, *, known: frozenset[str], stem: Callable[[str], str]) -> tuple[Entity, ...]:
    """Return the names in a question as sets of its `known` lexemes: quoted phrases and capitalised words.

    A capitalised word that begins a sentence is none, unless it is written in capitals; neither is anything in a
    question without a small letter.
    """
    if question.upper() == question:
        return ()
    phrases = [match.group(1) for match in _QUOTED.finditer(question)]
    found = (_lexemes(phrase, known, stem) for phrase in (*phrases, *_names(question)))
    return tuple(dict.fromkeys(entity for entity in found if entity))


def denials(text_search_config: str) -> frozenset[str]:
    """Return the words that deny in a text search configuration's language; none where they are not known."""
    return _DENIALS.get(text_search_config, frozenset())


def denial(text: str, words: frozenset[str]) -> bool:
    """Return whether a text holds one of the words that deny."""
    return bool(words) and any(word.lower() in words for word in _WORD.findall(text))


def numbers(lexemes: frozenset[str]) -> frozenset[str]:
    """Return the lexemes with a digit in them: numbers, years, codes."""
    return frozenset(lexeme for lexeme in lexemes if any(sign.isdigit() for sign in lexeme))


def _names(question: str) -> Iterator[str]:
    """Yield the runs of capitalised words."""
    run: list[re.Match[str]] = []
    for word in _WORD.finditer(question):
        if not _is_capitalised(question, word):
            continue
        if run and not _JOINING.match(question[run[-1].end() : word.start()]):
            yield question[run[0].start() : run[-1].end()]
            run = []
        run.append(word)
    if run:
        yield question[run[0].start() : run[-1].end()]


def _is_capitalised(question: str, word: re.Match[str]) -> bool:
    text = word.group()
    if not text[0].isupper() or text == "I":
        return False
    is_initialism = 1 < len(text) <= _MAX_INITIALISM_LENGTH and text.isupper()
    before = question[max(0, word.start() - _LOOK_BACK_CHARACTERS) : word.start()]
    return is_initialism or not _SENTENCE_START.search(before)


def _lexemes(phrase: str, known: frozenset[str], stem: Callable[[str], str]) -> Entity:
    return frozenset(stem(word.lower()) for word in _WORD.findall(phrase)) & known
