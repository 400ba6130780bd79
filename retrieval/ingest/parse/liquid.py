"""Removes the tags of site generators (Liquid, kramdown) from Markdown, but never from its code."""

import re
from typing import Final

#: A fenced block or a code span comes first in each alternation, so that nothing inside one matches.
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
#: What is captured is handed to an include that shows it as it stands: a code block.
_CAPTURE_FENCE: Final = "\n~~~~~~\n"
_RAW_TAG: Final = r"\{%-?[ \t]*(?:end)?raw[ \t]*-?%\}"
_RAW: Final = re.compile(rf"^[ \t]*{_RAW_TAG}[ \t]*\n|{_RAW_TAG}", re.MULTILINE)


def without_generator_tags(markdown: str) -> str:
    """Return `markdown` without includes, captures, attribute lists and site variables.

    Code blocks and code spans stay as they are, apart from the tags that switch Liquid off and on.
    """
    if "{" not in markdown:
        return markdown
    return _GENERATED.sub(_kept, _without_comments(_RAW.sub("", markdown)))


def _without_comments(markdown: str) -> str:
    """Drop what stands between comment tags; a comment that nothing closes is text."""
    kept: list[str] = []
    position = 0
    opened: int | None = None
    for tag in _COMMENT_TAG.finditer(markdown):
        if not tag[1] and opened is None:
            opened = tag.start()
        elif tag[1] and opened is not None:
            kept.append(markdown[position:opened])
            position, opened = tag.end(), None
    return "".join(kept) + markdown[position:]


def _kept(found: re.Match[str]) -> str:
    if found["fence"] or found["ticks"]:
        return found[0]
    return _CAPTURE_FENCE if found["verb"] in ("capture", "endcapture") else ""
