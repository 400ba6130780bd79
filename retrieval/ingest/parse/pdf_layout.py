"""Puts the lines of a PDF together to paragraphs: wraps undone, hyphens joined, table rows kept apart."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from retrieval.ingest.parse.pdf_lines import Line, is_apart, usual_leading
from retrieval.text.document import Block, BlockKind

#: What PDFium puts in place of a hyphen at which a word was broken.
BROKEN_WORD: Final = "\ufffe"
_WORD: Final = re.compile(r"\w[\w'\u2019]*")
_BROKEN: Final = re.compile(rf"(?<!\w)(\w+){BROKEN_WORD}(\w+)")
_HYPHEN_AT_END: Final = re.compile(r"\w[-\u00ad\u2010]$")
_FIGURE: Final = re.compile(r"[$€£(]*[\d\u2013\u2014-][\d,.%)]*")
_SENTENCE_END: Final = re.compile(r"[.!?:;][\"'\u201d\u2019)\]]*$")
#: Characters this many times as wide as the line is high mean columns with room between them.
_SPREAD: Final = 0.75
_SIZE_CHANGE: Final = 1.15
_SAME_ROW: Final = 0.8
#: Wraps are not exact: hyphens, justified text and kerning leave so much room.
_SLACK_CHARACTERS: Final = 3
#: Shorter words ("in", "for") start many words that were broken.
_MIN_START: Final = 4


def blocks_of_pages(pages: Sequence[Sequence[Line]]) -> list[Block]:
    """Return the paragraphs of the pages in reading order, each with the page that it starts on."""
    groups = list(_groups(pages))
    texts = [_joined(group) for group in groups]
    words = {word.casefold() for text in texts for word in _WORD.findall(_BROKEN.sub(" ", text))}
    return [
        Block(BlockKind.PARAGRAPH, _with_words_mended(text, words), page=group[0].page)
        for group, text in zip(groups, texts, strict=True)
    ]


def _groups(pages: Sequence[Sequence[Line]]) -> Iterator[list[Line]]:
    """Yield the lines of one paragraph (or of one table without gaps) at a time."""
    group: list[Line] = []
    for page in pages:
        leading = usual_leading(page)
        for line in page:
            if group and _starts_block(group[-1], line, leading):
                yield group
                group = []
            group.append(line)
    if group:
        yield group


def _starts_block(previous: Line, line: Line, leading: float) -> bool:
    if line.page != previous.page or line.bottom > previous.bottom + line.height / 2:
        return not _continues(previous, line)
    sizes = sorted((max(previous.height, 1), max(line.height, 1)))
    return is_apart(previous, line, leading) or sizes[1] > _SIZE_CHANGE * sizes[0]


def _continues(previous: Line, line: Line) -> bool:
    """Return True when a sentence goes on over the end of a column or a page."""
    is_open = not _SENTENCE_END.search(previous.text) and not _is_row(previous)
    return is_open and line.text[:1].islower() and not _is_row(line)


def _joined(group: Sequence[Line]) -> str:
    """Return the group's text: wrapped lines joined by spaces, lines that end early by line ends."""
    right = max(line.right for line in group)
    parts = [group[0].text]
    for previous, line in pairwise(group):
        if _HYPHEN_AT_END.search(previous.text) and line.text[:1].islower():
            parts[-1] = parts[-1][:-1] + BROKEN_WORD
        elif previous.text.endswith(BROKEN_WORD):
            pass
        elif _is_same_row(previous, line) or _is_wrapped(previous, line, right):
            parts.append(" ")
        else:
            parts.append("\n")
        parts.append(line.text)
    return "".join(parts)


def _is_same_row(previous: Line, line: Line) -> bool:
    is_level = previous.page == line.page and abs(previous.bottom - line.bottom) < _SAME_ROW * line.height
    return is_level and line.left >= previous.right


def _is_wrapped(previous: Line, line: Line, right: float) -> bool:
    """Return True when the next line's first word had no room on the previous one."""
    if previous.page != line.page:
        return True
    if _is_row(previous) or _is_row(line):
        return False
    first_word = line.text.partition(" ")[0]
    return previous.right + _character_width(line) * (len(first_word) + _SLACK_CHARACTERS) >= right


def _is_row(line: Line) -> bool:
    """Return True for a line that looks like the row of a table."""
    is_spread = " " in line.text and _character_width(line) > _SPREAD * line.height > 0
    last_words = line.text.rsplit(maxsplit=2)[-2:]
    return is_spread or all(map(_FIGURE.fullmatch, last_words))


def _character_width(line: Line) -> float:
    return (line.right - line.left) / max(len(line.text), 1)


def _with_words_mended(text: str, words: set[str]) -> str:
    """Join words that were broken at a line end; `words` are the document's words in lower case."""
    mended = _BROKEN.sub(lambda broken: _mended(broken[1], broken[2], words), text)
    return mended.replace(BROKEN_WORD, "-")


def _mended(start: str, end: str, words: set[str]) -> str:
    """Return the whole word, or keep the hyphen when the document knows the start as a word and not the whole."""
    whole = start + end
    is_compound = len(start) >= _MIN_START and start.casefold() in words and whole.casefold() not in words
    return f"{start}-{end}" if is_compound else whole
