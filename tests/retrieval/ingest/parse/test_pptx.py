import zipfile
from io import BytesIO

import pytest
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from retrieval.errors import IngestError
from retrieval.ingest.parse import parse
from retrieval.ingest.parse.pptx import parse_pptx
from retrieval.text.document import RawDocument

BOX = (Inches(1), Inches(1), Inches(4), Inches(2))


def saved(presentation):
    written = BytesIO()
    presentation.save(written)
    return written.getvalue()


def deck(*slides):
    """Return a presentation; each slide is a function that fills it, on the layout of title and content."""
    presentation = Presentation()
    for write in slides:
        write(presentation.slides.add_slide(presentation.slide_layouts[1]))
    return presentation


def read(raw, *slides):
    document = parse_pptx(raw(saved(deck(*slides)), name="deck.pptx"))
    return [(block.page, block.level or block.kind.value, block.text) for block in document.blocks]


def bullets(slide):
    slide.shapes.title.text = "Goals"
    frame = slide.placeholders[1].text_frame
    frame.text = "Grow"
    for text, level in (("in Oslo", 1), ("Save", 0)):
        paragraph = frame.add_paragraph()
        paragraph.text, paragraph.level = text, level


def shapes(slide):
    table = slide.shapes.add_table(2, 2, *BOX).table
    for cell, text in zip(table.iter_cells(), ("City", "Sales", "Oslo", "3"), strict=True):
        cell.text = text
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(*BOX).text_frame.text = "In a group"
    inner = group.shapes.add_group_shape()
    inner.shapes.add_textbox(*BOX).text_frame.text = "In a group in a group"
    slide.notes_slide.notes_text_frame.text = "Say it slowly"


def chart(slide):
    slide.shapes.title.text = "Figures"
    data = CategoryChartData()
    data.categories = ["2023", "2024"]
    data.add_series("Sales", (3, 4.5))
    data.add_series("Cost", (1, None))
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *BOX, data)


def test_slides_come_in_order_with_their_numbers(raw):
    assert read(raw, bullets, shapes, chart) == [
        (1, 2, "Goals"),
        (1, "list", "- Grow\n  - in Oslo\n- Save"),
        (2, 2, "Slide 2"),
        (2, "table", "City | Sales\nOslo | 3"),
        (2, "paragraph", "In a group"),
        (2, "paragraph", "In a group in a group"),
        (2, "paragraph", "Notes: Say it slowly"),
        (3, 2, "Figures"),
        (3, "table", "| Sales | Cost\n2023 | 3 | 1\n2024 | 4.5 |"),
    ]


def test_the_title_is_that_of_the_file_or_of_the_first_slide(raw):
    presentation = deck(bullets)
    presentation.core_properties.title = "Strategy"
    presentation.core_properties.author = "Ann"
    document = parse_pptx(raw(saved(presentation), name="deck.pptx"))
    assert (document.title, document.source_type, document.metadata["author"]) == ("Strategy", "pptx", "Ann")
    presentation.core_properties.title = "PowerPoint Presentation"
    assert parse_pptx(raw(saved(presentation), name="deck.pptx")).title == "Goals"


def test_hidden_slides_are_read_and_noted(raw):
    presentation = deck(bullets, bullets)
    presentation.slides[1].element.set("show", "0")
    document = parse_pptx(raw(saved(presentation), name="deck.pptx"))
    assert (document.metadata["slides"], document.metadata["hidden_slides"]) == ("2", "2")
    assert document.blocks[-1].page == 2


def reason_of(content):
    with pytest.raises(IngestError) as caught:
        parse(RawDocument("deck.pptx", content))
    return caught.value.reason


def test_what_cannot_be_read_has_a_reason(zipped):
    assert reason_of(saved(Presentation())) == "empty"
    assert reason_of(zipped({"word/document.xml": "<x/>"})) == "corrupt"
    assert reason_of(zipped({"ppt/presentation.xml": bytes(64 * 1024 * 1024)})) == "too_large"
    assert reason_of(saved(deck(bullets))[:2000]) == "corrupt"


def test_entities_stay_unread(raw, zipped):
    with zipfile.ZipFile(BytesIO(saved(deck(bullets)))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    slide = parts["ppt/slides/slide1.xml"].decode().replace("Grow", "Grow &x;")
    entity = '<!DOCTYPE p [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    parts["ppt/slides/slide1.xml"] = entity + slide.partition("?>")[2]
    assert all("root:" not in block.text for block in parse_pptx(raw(zipped(parts), name="deck.pptx")).blocks)
