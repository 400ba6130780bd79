"""The metadata above a Markdown page: the flat part of YAML (---) and TOML (+++).

Metadata are scalars and lists of scalars. Reading only those needs no YAML library and no anchors, tags or nesting,
which a hostile page could abuse.
"""

import re
from typing import Final

_FRONT_MATTER: Final = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.*?)^\1[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FACT: Final = re.compile(r"^([A-Za-z_][\w.-]*)[ \t]*[:=][ \t]*(.*)$")
_COMMENT: Final = re.compile(r"\s#.*$")
_FOLDED: Final = frozenset({"|", ">", "|-", ">-", "|+", ">+"})
_MAX_CHARACTERS: Final = 20_000


def split_front_matter(text: str) -> tuple[dict[str, str], str]:
    """Return the page's metadata, which may be empty, and the text below.

    Lists become one value with commas; nested values stay text.
    """
    found = _FRONT_MATTER.match(text)
    return (_facts(found[2][:_MAX_CHARACTERS]), text[found.end() :]) if found else ({}, text)


def _facts(lines: str) -> dict[str, str]:
    facts: dict[str, list[str]] = {}
    key = ""
    for line in lines.splitlines():
        fact = _FACT.match(line)
        entry = line.strip()
        if fact:
            key = fact[1].lower()
            facts[key] = _values(fact[2])
        elif key and entry.startswith("- "):
            facts[key].append(_unquoted(entry[2:]))
        elif key and entry and line[0].isspace():
            facts[key][-1:] = [" ".join([*facts[key][-1:], entry])]
    return {key: ", ".join(filter(None, values)) for key, values in facts.items()}


def _values(written: str) -> list[str]:
    written = written.strip()
    if written in _FOLDED:
        return []
    if written.startswith("[") and written.endswith("]"):
        return [_unquoted(part) for part in written[1:-1].split(",")]
    return [_unquoted(written)] if written else []


def _unquoted(value: str) -> str:
    value = value.strip()
    for quote in "\"'":
        end = value.rfind(quote)
        if value.startswith(quote) and end > 0:
            return value[1:end].replace("''", "'").replace('\\"', '"')
    return _COMMENT.sub("", value).rstrip()
