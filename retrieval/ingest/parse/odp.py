"""OpenDocument presentations (odp): slides in order, their title as heading, their notes at the end."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from lxml.etree import _Element

from retrieval.errors import IngestError
from retrieval.ingest.parse.finish import finished, one_line
from retrieval.ingest.parse.odt import BodyReader
from retrieval.ingest.parse.open_document import opened, qualified, text_of
from retrieval.text.document import Block, BlockKind, ParsedDocument, RawDocument

_PARAGRAPH: Final = qualified("text", "p")
_MAX_SLIDES: Final = 5000
_SLIDE_LEVEL: Final = 2
_CLASS: Final = qualified("presentation", "class")
_NOTES: Final = qualified("presentation", "notes")
_RUNNING: Final = frozenset({"date-time", "footer", "header", "page-number"})


def parse_odp(raw: RawDocument) -> ParsedDocument:
    """Return slides as pages, even hidden ones. Raises IngestError: `too_large`, `corrupt`, `encrypted`, `empty`."""
    document = opened(raw.content, "presentation")
    slides = list(document.body.iterchildren(qualified("draw", "page")))
    if len(slides) > _MAX_SLIDES:
        raise IngestError("too_large", f"The presentation has more than {_MAX_SLIDES} slides.")
    properties = document.root.iter(qualified("style", "drawing-page-properties"))
    parents = (it.getparent() for it in properties if it.get(qualified("presentation", "visibility")) == "hidden")
    hidden = frozenset(parent.get(qualified("style", "name"), "") for parent in parents if parent is not None)
    style = qualified("draw", "style-name")
    title = document.facts.pop("title", "")
    return finished(
        raw,
        source_type="pptx",
        blocks=[block for number, slide in enumerate(slides, start=1) for block in _slide(slide, number)],
        metadata={
            **document.facts,
            "slides": str(len(slides)),
            "hidden_slides": ", ".join(str(n) for n, it in enumerate(slides, start=1) if it.get(style) in hidden),
        },
        property_title=title,
    )


def _slide(slide: _Element, number: int) -> Iterator[Block]:
    """Yield the content of a slide; without a title, its heading is its number, so that it can be cited."""
    reader = BodyReader()
    title = ""
    for shape in slide:
        kind = shape.get(_CLASS, "")
        if kind == "title" and not title:
            title = _words(shape)
        elif shape.tag != _NOTES and kind not in _RUNNING:
            reader.read(shape)
    blocks = reader.blocks()
    shapes = (shape for notes in slide.iterchildren(_NOTES) for shape in notes if shape.get(_CLASS) == "notes")
    if notes := " ".join(filter(None, map(_words, shapes))):
        blocks = [*blocks, Block(BlockKind.PARAGRAPH, f"Notes: {notes}")]
    if title or blocks:
        yield Block(BlockKind.HEADING, title or f"Slide {number}", level=_SLIDE_LEVEL, page=number)
    for block in blocks:
        yield replace(block, page=number)


def _words(shape: _Element) -> str:
    return one_line(" ".join(map(text_of, shape.iter(_PARAGRAPH))))
