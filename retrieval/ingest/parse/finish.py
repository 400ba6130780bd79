"""The last step of every parser: clean the text, choose the title, refuse a document without text."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import Final

from retrieval.errors import IngestError
from retrieval.text.document import Block, BlockKind, Hyperlink, ParsedDocument, RawDocument

_MAX_TITLE_CHARACTERS: Final = 300
_MAX_LEVEL: Final = 6
_MAX_FACTS: Final = 32
_MAX_FACT_CHARACTERS: Final = 500
#: Control characters except tab and newline, soft hyphen, zero-width space, word joiner, byte order mark and others.
_UNWANTED: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\u2060\ufeff\ufffe\uffff]")
_LINE_ENDS: Final = re.compile("\r\n?|[\u0085\u2028\u2029\x0b\x0c]")
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_WIDE_SPACES: Final = re.compile("[\u00a0\u2007\u202f]")
_MANY_BLANK_LINES: Final = re.compile(r"\n[ \t]*\n(?:[ \t]*\n)+")
_NO_TITLES: Final = frozenset({"untitled", "untitled document", "document", "anonymous", "unspecified", "title"})
_BRACKETS: Final = ("()", "[]")  #: Around what a program made up: "(Untitled)".
_PROGRAM_PREFIX: Final = re.compile(r"^Microsoft (?:Word|PowerPoint|Excel) - ")
#: A line or row such as "Status: superseded by POL-15" that states whether a document counts.
_STATUS: Final = re.compile(
    r"^[-*\u2022 ]{0,9}(?:document )?(?:stat(?:us|ut|o)|estado) ?[:|] ?([^|\n]{2,80})$", re.IGNORECASE | re.MULTILINE
)
_NOT_VALID: Final = (
    "SUPERSEDED|DEPRECATED|OBSOLETE|ARCHIVED|WITHDRAWN|OUTDATED|DRAFT|VERALTET|UNGÜLTIG|UNGUELTIG|ENTWURF|OBSOLÈTE"
)
#: A paragraph that begins with a warning: "SUPERSEDED by POL-15", but not "OBSOLETE EQUIPMENT" or "DRAFT beer".
_WARNING: Final = re.compile(
    rf"^[\W_]{{0,9}}((?:{_NOT_VALID})\b(?=\W*$|\s?[^\w\s](?!\w)|\s(?:\d|(?i:by|since|on|as|from|for|in|version|durch|seit)\b))"
    r"[^|\n]{0,80})",
    re.MULTILINE,
)
_SENTENCE_WARNING: Final = re.compile(
    r"\bThis (?:\w{1,20} )?(?:document|page|version|edition|policy|procedure|guide|manual|runbook|article|list|form)"
    r" (?:is|was|has been) (?:now )?((?:superseded|deprecated|obsolete|outdated|withdrawn|retired|archived|replaced by"
    r"|no longer (?:valid|current|in force))\b[^|\n]{0,80})"
    r"|\bDiese[rs]? (?:Dokument|Seite|Fassung|Version|Richtlinie|Regelung|Anweisung|Anleitung|Liste) (?:ist|wurde)"
    r" ((?:veraltet|überholt|ersetzt|durch|nicht mehr gültig|aufgehoben|abgelöst)\b[^|\n]{0,80})"
)
_TITLE_WARNING: Final = re.compile(rf"[(\[]({_NOT_VALID})[)\]]|^({_NOT_VALID}) ?[:\u2013\u2014-] ")
#: A file's name that ends with such a word, or a folder that is one.
_NAME_WARNING: Final = re.compile(
    rf"[-_ .(\[]({_NOT_VALID})[)\]]?(?:\.\w{{1,5}})?$|(?:^|[/\\])(superseded|deprecated|obsolete)[/\\]", re.IGNORECASE
)
#: A heading that is one short sentence; with its full stop it would be read as text. "Acme Inc." is none.
_SHORT_SENTENCE: Final = re.compile(r"\A((?:[^\s.!?]+ ){0,7}[^\s.!?]{4,40})\.\Z")
_SENTENCE_END: Final = re.compile(r"\.(?:\s|$)")
_MAX_HEAD: Final = 5  #: Blocks at the start of a document among which its status is.
_GENERIC_STEMS: Final = frozenset({"index", "readme", "default"})


def cleaned(text: str) -> str:
    """Return `text` in NFC with plain line ends and spaces, without control and invisible characters."""
    text = _LINE_ENDS.sub("\n", text)
    if not text.isascii():
        text = _SURROGATES.sub("\ufffd", unicodedata.normalize("NFC", _WIDE_SPACES.sub(" ", text)))
    return _UNWANTED.sub("", text)


def tidy(text: str) -> str:
    """Return `text` cleaned, with at most one consecutive blank line and none around it."""
    return _MANY_BLANK_LINES.sub("\n\n", cleaned(text)).strip("\n").rstrip()


def one_line(text: str) -> str:
    """Return `text` with every run of white space as one space."""
    return " ".join(text.split())


def lowered(block: Block, levels: int) -> Block:
    """Return a block with its heading level increased by `levels`, up to 6."""
    is_heading = block.kind is BlockKind.HEADING
    return replace(block, level=min(block.level + levels, _MAX_LEVEL)) if is_heading else block


def finished(
    raw: RawDocument,
    *,
    source_type: str,
    blocks: Iterable[Block],
    metadata: Mapping[str, str] | None = None,
    explicit_title: str = "",
    property_title: str = "",
) -> ParsedDocument:
    """Return the parsed document with its title chosen and its text cleaned.

    The title is `explicit_title` (front matter), or else the first level-1 heading, `property_title` (from the file's
    properties), or the file's name. The first heading is dropped if it equals the title. Without a status among the
    metadata it is the one that the document states at its start. Raises IngestError `empty` if there is no text.
    """
    found = tuple(_tidied(blocks))
    if not found:
        raise IngestError("empty", "There is no text in the file.")
    title = _title(raw.name, found, explicit_title, property_title)
    known = {"status": _stated_status(raw.name, title, found), **(metadata or {})}
    facts = ((key, one_line(tidy(value))[:_MAX_FACT_CHARACTERS]) for key, value in known.items())
    return ParsedDocument(
        title=title,
        blocks=_without_title_heading(found, title),
        source_type=source_type,
        metadata=dict([(key, value) for key, value in facts if value][:_MAX_FACTS]),
    )


def title_from_properties(written: str) -> str:
    """Return the title in a file's properties, empty for one that a program made up."""
    bare = _PROGRAM_PREFIX.sub("", one_line(written))
    bare = bare[1:-1] if bare[:1] + bare[-1:] in _BRACKETS else bare
    return bare if bare.lower() not in _NO_TITLES and any(map(str.isalpha, bare)) else ""


def title_from_name(name: str) -> str:
    """Return a readable title made of a path or file name."""
    path = PurePosixPath(name.replace("\\", "/"))
    stem = path.stem
    if stem.lower() in _GENERIC_STEMS and path.parent.name:
        stem = path.parent.name
    words = one_line(re.sub(r"[_\-]+", " ", stem))
    readable = words or path.name or "Untitled"
    return readable if any(map(str.isupper, readable)) else readable[:1].upper() + readable[1:]


def _tidied(blocks: Iterable[Block]) -> Iterable[Block]:
    found = tuple(blocks)
    for block, following in zip_longest(found, found[1:]):
        text = tidy(block.text)
        if block.kind is BlockKind.HEADING and following and following.kind is not BlockKind.HEADING:
            text = _SHORT_SENTENCE.sub(r"\1", text)
        if text.strip():
            links = tuple(Hyperlink(one_line(cleaned(it.text)), cleaned(it.target)) for it in block.links)
            yield replace(block, text=text, header=tidy(block.header), links=links)


def _title(name: str, blocks: tuple[Block, ...], explicit: str, from_properties: str) -> str:
    first_heading = next((block.text for block in blocks if block.kind is BlockKind.HEADING and block.level == 1), "")
    candidates = (explicit, first_heading, title_from_properties(from_properties), title_from_name(name))
    title = next(filter(None, (one_line(tidy(candidate)) for candidate in candidates)), "Untitled")
    return title[:_MAX_TITLE_CHARACTERS]


def _stated_status(name: str, title: str, blocks: Sequence[Block]) -> str:
    """Return the status that a document states at its start, in its title or in its name; empty without one."""
    head = blocks[:_MAX_HEAD]
    prose = "\n".join(block.text for block in head if block.kind is BlockKind.PARAGRAPH)
    stated = (
        _STATUS.search("\n".join(block.text for block in head))
        or _WARNING.search(prose)
        or _SENTENCE_WARNING.search(prose)
        or _TITLE_WARNING.search(title)
        or _NAME_WARNING.search(name)
    )
    if not stated:
        return ""
    return _SENTENCE_END.split(str(stated[stated.lastindex or 0]), maxsplit=1)[0].strip(" *_:,")


def _without_title_heading(blocks: tuple[Block, ...], title: str) -> tuple[Block, ...]:
    for position, block in enumerate(blocks):
        if block.kind is BlockKind.HEADING:
            repeats = one_line(block.text).casefold() == title.casefold()
            return (*blocks[:position], *blocks[position + 1 :]) if repeats and len(blocks) > 1 else blocks
    return blocks
