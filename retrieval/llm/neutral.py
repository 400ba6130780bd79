"""Removes from a document's text everything that a language model could read as more than text."""

import re
import unicodedata
from typing import Final

from retrieval.llm.citations import escape_markers

#: Categories of control and format characters, private use, surrogates and unassigned code points.
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})
#: Joiners of letters in Persian, Hindi and others; between Latin letters they only hide something.
_JOINERS: Final = frozenset("\u200c\u200d")
_VARIANTS: Final = re.compile("[\U000e0100-\U000e01ef\u115f\u1160\u3164\uffa0]")
_LINE_BREAKS: Final = re.compile("\r\n?|[\u2028\u2029\u0085\v\f]")

_FENCE_OPENING: Final = re.compile(r"^([ \t]*)(<{3,})", re.MULTILINE)
_FENCE_CLOSING: Final = re.compile(r"(?<!>)(>{3,}+)(?=[ \t]*$)", re.MULTILINE)
#: Role tokens of language models' templates, such as <|im_start|> and [INST].
_ROLE_TOKEN: Final = re.compile("<(?=[|\uff5c][^\\s<>]{1,40}[|\uff5c]>)")
_NAMED_TOKEN: Final = re.compile(
    r"<(?=/?(?:s|bos|eos|pad|unk|mask|start_of_turn|end_of_turn|tool_calls?|tool_response|function_calls?|think)\s*>)"
    r"|<(?=<?/?SYS>)",
    re.IGNORECASE,
)
_BRACKET_TOKEN: Final = re.compile(
    r"\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_(?:CALLS|RESULTS|CONTENT)|THINK|IMG)\])"
)


def plain(text: str) -> str:
    """Return a text without invisible characters, except line breaks, tabs and the joiners of other scripts."""
    unified = _VARIANTS.sub("", _LINE_BREAKS.sub("\n", text))
    return "".join(char for place, char in enumerate(unified) if _is_visible(unified, place))


def _is_visible(text: str, place: int) -> bool:
    char = text[place]
    if char in _JOINERS:
        return _is_uncased(text[place - 1 : place]) and _is_uncased(text[place + 1 : place + 2])
    return char in frozenset("\n\t") or unicodedata.category(char) not in _INVISIBLE


def _is_uncased(char: str) -> bool:
    """Return whether a character is a letter without case, as scripts with joiners have, or a mark on one."""
    return bool(char) and unicodedata.category(char) in {"Lo", "Mn", "Mc"}


def neutral(text: str) -> str:
    """Return a document's text without citation markers, fences and role tokens; readers see the same text."""
    safe = escape_markers(plain(text))
    safe = _NAMED_TOKEN.sub("< ", _ROLE_TOKEN.sub("< ", safe))
    safe = _BRACKET_TOKEN.sub("[ ", safe)
    safe = _FENCE_OPENING.sub(lambda found: found[1] + " ".join(found[2]), safe)
    return _FENCE_CLOSING.sub(lambda found: " ".join(found[1]), safe)
