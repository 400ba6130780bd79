"""Removal of site generators' tags (Liquid, kramdown) from Markdown, except in code."""

import re
from typing import Final

#: Fenced blocks and code spans come first in the alternation, so that tags inside them do not match.
_FENCE: Final = r"^(?P<indent>[ \t]*)(?P<fence>`{3,}+|~{3,}+)[^\n]*+\n(?:.*?^[ \t]*(?P=fence)[`~]*[ \t]*$|.*\Z)"
_SPAN: Final = r"(?<!`)(?P<ticks>`+)(?!`)[^\n]{1,500}?(?<!`)(?P=ticks)(?!`)"
_COMMENT_TAG: Final = re.compile(r"\{%-?[ \t]*(end)?comment[ \t]*-?%\}")
_TAG: Final = r"\{%-?[ \t]*+(?P<verb>\w*+)(?:(?!\{%).){0,500}?%\}"
_VARIABLE: Final = r"\{\{-?[ \t]*(?:site|page|include|layout)\.[^\n{}]{0,300}\}\}"
_CONTENTS: Final = r"^[ \t]*(?:[-*+]|\d+\.)[ \t]++[^\n]*+\n[ \t]*+\{:\s*toc\b[^\n}]*\}"
_ATTRIBUTES: Final = r"\{::?[^\n{}]{0,300}\}|\{:/[^\n{}]{0,80}\}|[ \t]\{#[\w-]+\}[ \t]*$"
_GENERATED: Final = re.compile(
    "|".join(f"(?:{pattern})" for pattern in (_FENCE, _SPAN, _TAG, _VARIABLE, _CONTENTS, _ATTRIBUTES)),
    re.DOTALL | re.MULTILINE,
)
#: Captured text is passed to an include that shows it unchanged, as a code block.
_CAPTURE_FENCE: Final = "\n~~~~~~\n"
_RAW_TAG: Final = r"\{%-?[ \t]*(?:end)?raw[ \t]*-?%\}"
_RAW: Final = re.compile(rf"^[ \t]*{_RAW_TAG}[ \t]*\n|{_RAW_TAG}", re.MULTILINE)


def without_generator_tags(markdown: str) -> str:
    """Return `markdown` without includes, captures, attribute lists and site variables.

    Code blocks and code spans do not change, except for the tags that switch Liquid off and on.
    """
    if "{" not in markdown:
        return markdown
    return _GENERATED.sub(_replacement, _without_comments(_RAW.sub("", markdown)))


def _without_comments(markdown: str) -> str:
    """Remove the text between comment tags; an unclosed comment is text."""
    parts: list[str] = []
    position = 0
    opened: int | None = None
    for tag in _COMMENT_TAG.finditer(markdown):
        if not tag[1] and opened is None:
            opened = tag.start()
        elif tag[1] and opened is not None:
            parts.append(markdown[position:opened])
            position, opened = tag.end(), None
    return "".join(parts) + markdown[position:]


def _replacement(found: re.Match[str]) -> str:
    if found["fence"] or found["ticks"]:
        return found[0]
    return _CAPTURE_FENCE if found["verb"] in ("capture", "endcapture") else ""
