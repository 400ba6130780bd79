"""PowerPoint presentations (pptx): slides in order, their title as heading, their notes at the end."""

from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from itertools import islice
from typing import Any, Final

from pptx import Presentation
from pptx.enum.shapes import MSO_SHAPE_TYPE, PP_PLACEHOLDER
from pptx.oxml import parse_xml
from pptx.oxml.ns import qn
from pptx.slide import Slide

from retrieval.errors import IngestError
from retrieval.ingest.parse.builder import BlockBuilder
from retrieval.ingest.parse.containers import checked_names
from retrieval.ingest.parse.finish import finished, one_line
from retrieval.ingest.parse.number_format import plain
from retrieval.text.document import Block, BlockKind, ParsedDocument, RawDocument

_MAX_SLIDES: Final = 5000
_MAX_NESTED_GROUPS: Final = 20
_MAX_POINTS: Final = 1000
_SLIDE_LEVEL: Final = 2
_DIAGRAM: Final = "http://schemas.openxmlformats.org/drawingml/2006/diagram"
_DIAGRAM_POINT: Final = f"{{{_DIAGRAM}}}pt"
_DIAGRAM_IDS: Final = f"{{{_DIAGRAM}}}relIds"
_RUNNING: Final = frozenset(
    {PP_PLACEHOLDER.DATE, PP_PLACEHOLDER.FOOTER, PP_PLACEHOLDER.HEADER, PP_PLACEHOLDER.SLIDE_NUMBER}
)

_Shape = Any


def parse_pptx(raw: RawDocument) -> ParsedDocument:
    """Return slides as pages, even hidden ones. Raises IngestError: `too_large`, `corrupt`, `encrypted`, `empty`."""
    if "ppt/presentation.xml" not in checked_names(raw.content):
        raise IngestError("corrupt", "The file is not a PowerPoint presentation.")
    presentation = Presentation(BytesIO(raw.content))
    slides = list(islice(presentation.slides, _MAX_SLIDES + 1))
    if len(slides) > _MAX_SLIDES:
        raise IngestError("too_large", f"The presentation has more than {_MAX_SLIDES} slides.")
    properties = presentation.core_properties
    title = properties.title or ""
    return finished(
        raw,
        source_type="pptx",
        blocks=[block for number, slide in enumerate(slides, start=1) for block in _slide(slide, number)],
        metadata={
            "author": properties.author or "",
            "subject": properties.subject or "",
            "keywords": properties.keywords or "",
            "created": properties.created.date().isoformat() if properties.created else "",
            "modified": properties.modified.date().isoformat() if properties.modified else "",
            "slides": str(len(slides)),
            "hidden_slides": ", ".join(
                str(n) for n, slide in enumerate(slides, start=1) if (slide.element.get("show") in ("0", "false"))
            ),
        },
        property_title=title if title.lower() != "powerpoint presentation" else _title(slides[0]) if slides else "",
    )


def _slide(slide: Slide, number: int) -> Iterator[Block]:
    """Yield the content of a slide; without a title, its heading is its number, so that it can be cited."""
    builder = BlockBuilder()
    for shape in slide.shapes:
        if shape != slide.shapes.title:
            _read(shape, builder, _MAX_NESTED_GROUPS)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = one_line(slide.notes_slide.notes_text_frame.text)
        builder.paragraph(f"Notes: {notes}" if notes else "")
    title = _title(slide)
    blocks = builder.blocks()
    if title or blocks:
        yield Block(BlockKind.HEADING, title or f"Slide {number}", level=_SLIDE_LEVEL, page=number)
    for block in blocks:
        yield replace(block, page=number)


def _title(slide: Slide) -> str:
    title = slide.shapes.title
    return one_line(title.text_frame.text) if title is not None else ""


def _read(shape: _Shape, builder: BlockBuilder, depth: int) -> None:
    if shape.is_placeholder and shape.placeholder_format.type in _RUNNING:
        return
    if shape.shape_type == MSO_SHAPE_TYPE.GROUP:
        if depth:
            for inner in shape.shapes:
                _read(inner, builder, depth - 1)
    elif shape.has_table:
        rows = [[one_line(cell.text) for cell in row.cells] for row in shape.table.rows]
        builder.table(rows, has_header=shape.table.first_row)
    elif shape.has_chart:
        _read_chart(shape.chart, builder)
    elif shape.has_text_frame:
        paragraphs = [paragraph for paragraph in shape.text_frame.paragraphs if paragraph.text.strip()]
        is_body = shape.is_placeholder and len(paragraphs) > 1
        for paragraph in paragraphs:
            text = one_line(paragraph.text)
            properties = paragraph._p.pPr  # noqa: SLF001 - python-pptx has no other way to a paragraph's bullet
            has_bullet = properties is not None and bool(
                list(properties.iterchildren(qn("a:buChar"), qn("a:buAutoNum")))
            )
            if is_body or has_bullet or paragraph.level:
                builder.item(text, depth=paragraph.level, marker="-")
            else:
                builder.paragraph(text)
    else:
        _read_diagram(shape, builder)


def _read_chart(chart: _Shape, builder: BlockBuilder) -> None:
    if chart.has_title and chart.chart_title.has_text_frame:
        builder.paragraph(one_line(chart.chart_title.text_frame.text))
    for plot in chart.plots:
        categories = [str(category) for category in islice(plot.categories, _MAX_POINTS)]
        series = list(plot.series)
        rows = [["", *(one_line(each.name or "") for each in series)]]
        values = [list(islice(each.values, len(categories))) for each in series]
        for place, category in enumerate(categories):
            points = (each[place] if place < len(each) else None for each in values)
            rows.append([category, *("" if point is None else plain(point) for point in points)])
        builder.table(rows, has_header=True)


def _read_diagram(shape: _Shape, builder: BlockBuilder) -> None:
    """Add the texts of a diagram (SmartArt), which are in a separate part."""
    for ids in shape.element.iter(_DIAGRAM_IDS):
        relation = ids.get(qn("r:dm"))
        if relation not in shape.part.rels or shape.part.rels[relation].is_external:
            continue
        for point in parse_xml(shape.part.related_part(relation).blob).iter(_DIAGRAM_POINT):
            builder.item(" ".join(text.text or "" for text in point.iter(qn("a:t"))), depth=0, marker="-")
