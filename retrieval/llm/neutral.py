"""Taking from a document's text what could pass for anything but text in front of a language model. Pure."""

import re
import unicodedata
from typing import Final

from retrieval.llm.citations import escape_markers

#: Control signs, formatting without a shape, private use, halves of pairs, what is not assigned.
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})
_LAYOUT: Final = frozenset("\n\t")
#: They join and part letters in Persian, Hindi and others; among Latin letters they only hide something.
_JOINERS: Final = frozenset("\u200c\u200d")
_VARIANTS: Final = re.compile("[\U000e0100-\U000e01ef\u115f\u1160\u3164\uffa0]")
_LINE_BREAKS: Final = re.compile("\r\n?|[\u2028\u2029\u0085\v\f]")

_FENCE_OPENING: Final = re.compile(r"^([ \t]*)(<{3,})", re.MULTILINE)
_FENCE_CLOSING: Final = re.compile(r"(?<!>)(>{3,}+)(?=[ \t]*$)", re.MULTILINE)
#: What the templates of language models set around roles, such as <|im_start|> and [INST].
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
    """Return a text without what cannot be seen: only line breaks, tabs and the joiners of other scripts stay."""
    unified = _VARIANTS.sub("", _LINE_BREAKS.sub("\n", text))
    return "".join(sign for place, sign in enumerate(unified) if _is_seen(unified, place))


def _is_seen(text: str, place: int) -> bool:
    sign = text[place]
    if sign in _JOINERS:
        return _is_other_letter(text[place - 1 : place]) and _is_other_letter(text[place + 1 : place + 2])
    return sign in _LAYOUT or unicodedata.category(sign) not in _INVISIBLE


def _is_other_letter(sign: str) -> bool:
    """Return whether a sign is a letter without capitals, as scripts with joiners have, or a mark on one."""
    return bool(sign) and unicodedata.category(sign) in {"Lo", "Mn", "Mc"}


def neutral(text: str) -> str:
    """Return a document's text in which nothing is a citation, a fence or a role's token; it reads the same."""
    seen = escape_markers(plain(text))
    seen = _NAMED_TOKEN.sub("< ", _ROLE_TOKEN.sub("< ", seen))
    seen = _BRACKET_TOKEN.sub("[ ", seen)
    seen = _FENCE_OPENING.sub(lambda found: found[1] + _spaced(found[2]), seen)
    return _FENCE_CLOSING.sub(lambda found: _spaced(found[1]), seen)


def _spaced(signs: str) -> str:
    return " ".join(signs)
