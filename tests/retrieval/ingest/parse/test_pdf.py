from itertools import pairwise

import pytest

from retrieval.errors import IngestError
from retrieval.ingest.parse.pdf import parse_pdf

PROSE = (
    "The release captain drains the queue before any rollback and",
    "writes down the time. Draining takes four minutes when every",
    "worker is healthy.",
)


def test_wrapped_lines_become_paragraphs_with_their_page(raw, pdf, lines, shape):
    content = pdf(lines(*PROSE, "", "A second paragraph."), lines("On the next page."))
    document = parse_pdf(raw(content, name="run-book.pdf"))
    assert shape(document) == [
        ("paragraph", " ".join(PROSE)),
        ("paragraph", "A second paragraph."),
        ("paragraph", "On the next page."),
    ]
    assert [block.page for block in document.blocks] == [1, 1, 2]
    assert document.source_type == "pdf"
    assert document.metadata["pages"] == "2"


def test_a_sentence_goes_on_over_the_page(raw, pdf, lines, shape):
    document = parse_pdf(raw(pdf(lines("The captain drains the"), lines("queue first.")), name="a.pdf"))
    assert shape(document) == [("paragraph", "The captain drains the queue first.")]


def test_rows_of_a_table_stay_lines(raw, pdf, lines, shape):
    content = pdf(lines("Cash and equivalents 6,006 8,555", "Inventories 2,655 2,675", "Total 8,661 11,230"))
    assert shape(parse_pdf(raw(content, name="a.pdf"))) == [
        ("paragraph", "Cash and equivalents 6,006 8,555\nInventories 2,655 2,675\nTotal 8,661 11,230")
    ]


def test_larger_lines_are_headings_with_levels_by_size(raw, pdf, lines, shape):
    content = pdf(
        [
            *lines("Employee guide", top=760, size=20),
            *lines("Working time and", "breaks", top=700, size=14, leading=17),
            *lines(*PROSE, top=660),
            *lines("Core time", top=600, size=12),
            *lines("It is from nine to three.", top=580),
            *lines("Larger, but the end of a sentence.", top=550, size=14),
            *lines("Breaks", top=520, size=12),
            *lines("They are paid.", top=500),
            *lines("Holiday", top=470, size=14),
            *lines("You have 25 days.", top=450),
        ]
    )
    document = parse_pdf(raw(content, name="guide.pdf"))
    assert document.title == "Guide"
    assert shape(document) == [
        (1, "Employee guide"),
        (1, "Working time and breaks"),
        ("paragraph", " ".join(PROSE)),
        (2, "Core time"),
        ("paragraph", "It is from nine to three."),
        ("paragraph", "Larger, but the end of a sentence."),
        (2, "Breaks"),
        ("paragraph", "They are paid."),
        (1, "Holiday"),
        ("paragraph", "You have 25 days."),
    ]


def test_a_page_in_large_type_has_no_headings(raw, pdf, lines, shape):
    letter = lines("Dear James", "you will be eligible", "for the benefit", top=700, size=14, leading=40)
    document = parse_pdf(raw(pdf(lines(*PROSE), letter), name="a.pdf"))
    assert {kind for kind, _ in shape(document)} == {"paragraph"}


def cells(*rows, top=700, lefts=(72, 200, 330)):
    return [
        (left, top - 20 * number, 10, text)
        for number, row in enumerate(rows)
        for left, text in zip(lefts, row, strict=False)
        if text
    ]


def test_lines_with_cells_below_each_other_are_a_table(raw, pdf, lines, shape):
    rows = [
        ("Years", "Holiday (days)", "Notice"),
        ("0 to 2", "25", ""),
        ("3 to 5", "", "1 month"),
        ("6 and more", "29", ""),
    ]
    content = pdf(
        [
            *lines("Every year counts.", top=740),
            *cells(*rows),
            (200, 630, 10, "and a bonus"),
            *lines("That is all.", top=600),
        ]
    )
    assert shape(parse_pdf(raw(content, name="a.pdf"))) == [
        ("paragraph", "Every year counts."),
        (
            "table",
            "Years | Holiday (days) | Notice\n0 to 2 | 25 | \n3 to 5 |  | 1 month\n6 and more | 29 and a bonus |",
        ),
        ("paragraph", "That is all."),
    ]
    assert parse_pdf(raw(content, name="a.pdf")).blocks[1].header == "Years | Holiday (days) | Notice"


def test_cells_without_a_first_one_are_a_row_a_wrapped_cell_or_another_table(raw, pdf, shape):
    rows = [("Car", "Part", "Cost"), ("Jeep", "Roof", "9"), ("", "Door", "7"), ("Van", "Wheel", "5")]
    below = [(200, 628, 10, "with tyre"), (330, 628, 10, "or less"), *cells(("", "Hours", "Rate"), top=608)]
    content = pdf([*cells(*rows), *below, *cells(("Labor", "2", "150"), ("Paint", "3", "140"), top=588)])
    assert [text for _, text in shape(parse_pdf(raw(content, name="a.pdf")))] == [
        "Car | Part | Cost\nJeep | Roof | 9\n | Door | 7\nVan | Wheel with tyre | 5 or less",
        " | Hours | Rate\nLabor | 2 | 150\nPaint | 3 | 140",
    ]


@pytest.mark.parametrize(
    "rows",
    [
        [("Sales", "3,958"), ("Costs", "2,004"), ("Tax", "17")],  # No header
        [("\u2022", "Open the valve"), ("\u2022", "Close the valve"), ("\u2022", "Wait")],
        [("1.", "Open the valve"), ("2.", "Close the valve"), ("3.", "Wait")],
        [("Name:", "Ann"), ("Phone:", "215"), ("Role:", "captain")],
        [("Name", "Phone"), ("Ann", "215")],
    ],
)
def test_figures_without_header_lists_forms_and_two_lines_are_no_table(raw, pdf, shape, rows):
    content = pdf(cells(*rows))
    assert {kind for kind, _ in shape(parse_pdf(raw(content, name="a.pdf")))} == {"paragraph"}


LEFTS, TOPS = (70, 170, 290, 410), (715, 685, 655, 640)
#: A table with two lines in its header and in its first row.
BORDERED = [
    *((74, 700, 10, "Town"), (174, 700, 10, "Visitors at the"), (174, 688, 10, "hotel by"), (294, 700, 10, "Fridays")),
    *((74, 670, 10, "Zomba"), (174, 670, 10, "21.00"), (294, 670, 10, "one hour"), (294, 658, 10, "later")),
    *((74, 644, 10, "Abeche"), (174, 644, 10, "19.00"), (294, 644, 10, "no change")),
]
TOWNS = "Town | Visitors at the hotel by | Fridays\nZomba | 21.00 | one hour later\nAbeche | 19.00 | no change"


def ruled(lefts=LEFTS, tops=TOPS):
    levels = [f"{lefts[0]} {top} m {lefts[-1]} {top} l S" for top in tops]
    return " ".join([*levels, *(f"{left} {tops[0]} m {left} {tops[-1]} l S" for left in lefts)])


def boxed(lefts=LEFTS, tops=TOPS):
    return " ".join(
        f"{left} {bottom} {right - left} {top - bottom} re S"
        for left, right in pairwise(lefts)
        for top, bottom in pairwise(tops)
    )


@pytest.mark.parametrize(
    "drawn",
    [
        ruled(),
        boxed(),
        f"q 2 0 0 2 0 0 cm {ruled([it / 2 for it in LEFTS], [it / 2 for it in TOPS])} Q",
        " ".join(f"{LEFTS[0]} {top} {LEFTS[-1] - LEFTS[0]} 0.5 re f" for top in TOPS),  # Rules between rows alone
    ],
)
def test_borders_make_a_table_whose_cells_have_several_lines(raw, pdf, lines, shape, drawn):
    content = pdf([*lines("Night curfew.", top=740), *BORDERED, *lines("That is all.", top=600)], drawn=drawn)
    document = parse_pdf(raw(content, name="a.pdf"))
    assert shape(document) == [("paragraph", "Night curfew."), ("table", TOWNS), ("paragraph", "That is all.")]
    assert document.blocks[1].header == "Town | Visitors at the hotel by | Fridays"


def test_a_table_with_borders_goes_on_over_the_page_with_or_without_its_header(raw, pdf, lines, shape):
    other = [(x, y, size, text.replace("Zomba", "Surkhet")) for x, y, size, text in BORDERED]
    bare = [
        *((74, 670, 10, "Leeds"), (174, 670, 10, "never"), (294, 670, 10, "never")),
        *((74, 644, 10, "Adre"), (174, 644, 10, "18.00"), (294, 644, 10, "closed")),
    ]
    document = parse_pdf(raw(pdf(BORDERED, other, bare, drawn=boxed()), name="a.pdf"))
    rest = "Surkhet | 21.00 | one hour later\nAbeche | 19.00 | no change\nLeeds | never | never\nAdre | 18.00 | closed"
    assert shape(document) == [("table", f"{TOWNS}\n{rest}")]


def test_boxes_around_prose_and_the_lines_of_a_chart_are_no_table(raw, pdf, lines, shape):
    columns = [*lines("The captain drains the queue.", "He waits.", top=700), *lines("Costs", top=660, left=175)]
    for content in (pdf(columns, drawn=boxed()), pdf(lines("Sales 2025", top=700), drawn=boxed())):
        assert {kind for kind, _ in shape(parse_pdf(raw(content, name="a.pdf")))} == {"paragraph"}


def test_a_title_with_a_page_number_on_two_pages_is_left_out(raw, pdf, lines, shape):
    pages = [[(72, 770, 10, f"Rules of the library Page {at}"), *lines("Quiet, please.")] for at in (1, 2)]
    assert shape(parse_pdf(raw(pdf(*pages), name="a.pdf"))) == [("paragraph", "Quiet, please.")] * 2


def test_a_table_of_contents_is_left_out(raw, pdf, lines, shape):
    contents = [f"{number} Part {number} . . . . . . . . {number + 2}" for number in range(1, 5)]
    document = parse_pdf(raw(pdf(lines(*contents), lines("Text.")), name="a.pdf"))
    assert shape(document) == [("paragraph", "Text.")]


def test_items_begin_lines_also_where_the_line_before_is_full(raw, pdf, lines):
    content = pdf(
        lines(
            "1. Products are only applied by persons with a certificate.",
            "2. The log is stored for three years, and nobody changes it.",
            "\xb7 Never spray.",
        )
    )
    assert parse_pdf(raw(content, name="a.pdf")).blocks[0].text == (
        "1. Products are only applied by persons with a certificate.\n"
        "2. The log is stored for three years, and nobody changes it.\n\u2022 Never spray."
    )


def test_broken_words_are_mended(raw, pdf, lines):
    content = pdf(
        lines(
            "Our information about the deploy-",
            "ment of long-term plans is old. The informa-",
            "tion about deployment is new. A plan for the term is long-",
            "term too.",
        )
    )
    (block,) = parse_pdf(raw(content, name="a.pdf")).blocks
    assert block.text == (
        "Our information about the deployment of long-term plans is old. "
        "The information about deployment is new. A plan for the term is long-term too."
    )


def test_running_lines_and_page_numbers_are_removed(raw, pdf, lines, shape):
    pages = [
        [
            *lines("Acme Annual Report, Confidential", top=760),
            *lines(f"This is what page {name} says.", "It says no more."),
            *lines(f"Page {number} of 4", top=40),
        ]
        for number, name in enumerate(("one", "two", "three", "four"), start=1)
    ]
    document = parse_pdf(raw(pdf(*pages), name="a.pdf"))
    assert [text for _, text in shape(document)] == [
        f"This is what page {name} says. It says no more." for name in ("one", "two", "three", "four")
    ]


def test_the_title_of_a_chapter_is_kept_where_it_first_stands(raw, pdf, lines, shape):
    chapters = ["Alpha"] * 4 + ["Beta"] * 4 + ["Gamma"] * 4
    pages = [
        [*lines(f"Chapter {chapter}", top=760), *lines(f"What page {name} says.")]
        for chapter, name in zip(chapters, "abcdefghijkl", strict=True)
    ]
    texts = [text for _, text in shape(parse_pdf(raw(pdf(*pages), name="a.pdf")))]
    assert [text for text in texts if text.startswith("Chapter")] == ["Chapter Alpha", "Chapter Beta", "Chapter Gamma"]


def test_running_lines_with_the_name_of_each_section_and_roman_numbers_are_removed(raw, pdf, lines, shape):
    names = ("ROOMS", "KEYS", "VISITS", "FEES", "RULES", "LAWS")
    pages = [
        [
            *lines(f"CHAPTER {number // 3 + 1}. HOUSE {number}.1. {name}", top=760),
            *lines(*PROSE),
            *lines(("i", "ii", "iii", "iv", "v", "vi")[number], top=40),
        ]
        for number, name in enumerate(names)
    ]
    assert {text for _, text in shape(parse_pdf(raw(pdf(*pages), name="a.pdf")))} == {" ".join(PROSE)}


def test_the_number_of_a_chapter_and_its_larger_name_are_one_heading(raw, pdf, lines, shape):
    chapter = [*lines("Chapter 2", top=740, size=14), *lines("Visits", top=700, size=20), *lines(*PROSE, top=660)]
    assert shape(parse_pdf(raw(pdf(chapter), name="a.pdf")))[0] == (1, "Chapter 2 Visits")


def test_an_address_that_was_broken_is_whole(raw, pdf, lines):
    content = pdf(
        lines(
            "More about it is at https://www.",
            "debian.org/social and in the manual.",
            "See https://debian.org/.",
            "That is all.",
        )
    )
    assert (
        parse_pdf(raw(content, name="a.pdf"))
        .blocks[0]
        .text.startswith("More about it is at https://www.debian.org/social and")
    )


def test_a_sentence_goes_on_in_another_font_size(raw, pdf, lines, shape):
    content = pdf(
        [
            *lines(*PROSE, "The script is at the end of all", top=700),
            *lines("settings/run.sh, below the others.", top=652, size=8),
        ]
    )
    ((_, text),) = shape(parse_pdf(raw(content, name="a.pdf")))
    assert text.endswith("of all\nsettings/run.sh, below the others.")


def test_the_repeated_header_row_of_a_table_stays(raw, pdf, lines, shape):
    pages = [lines("Product Stock", *(f"part {name} {row}" for row in "xyz")) for name in "abcd"]
    texts = [text for _, text in shape(parse_pdf(raw(pdf(*pages), name="a.pdf")))]
    assert sum("Product Stock" in text for text in texts) == 4


def test_the_title_and_dates_of_the_file_are_kept(raw, pdf, lines):
    info = "/Title (Release handbook) /Author (Ann) /CreationDate (D:20240501120000Z)"
    document = parse_pdf(raw(pdf(lines("Text."), info=info), name="x.pdf"))
    assert document.title == "Release handbook"
    assert document.metadata == {"author": "Ann", "created": "2024-05-01", "pages": "1"}


def test_a_title_in_brackets_loses_both_and_another_none(raw, pdf, lines):
    titles = [r"/Title (\(Run book\))", r"/Title (Rules \(2021\))"]
    found = [parse_pdf(raw(pdf(lines("Text."), info=title), name="x.pdf")).title for title in titles]
    assert found == ["Run book", "Rules (2021)"]


@pytest.mark.parametrize(
    ("content", "reason"), [(b"%PDF-1.7 and then nothing", "corrupt"), (b"not a PDF at all", "corrupt")]
)
def test_a_broken_file_is_refused(content, reason, raw):
    with pytest.raises(IngestError) as caught:
        parse_pdf(raw(content, name="a.pdf"))
    assert caught.value.reason == reason


def test_a_scan_is_refused(raw, pdf):
    with pytest.raises(IngestError) as caught:
        parse_pdf(raw(pdf([], []), name="a.pdf"))
    assert caught.value.reason == "no_text"


def test_a_file_with_a_password_is_refused(raw, pdf, lines):
    encryption = f"/Filter /Standard /V 1 /R 2 /Length 40 /P -4 /O <{'00' * 32}> /U <{'11' * 32}>"
    content = pdf(lines("Secret."), trailer=f"/Encrypt << {encryption} >> /ID [<00> <00>]")
    with pytest.raises(IngestError) as caught:
        parse_pdf(raw(content, name="a.pdf"))
    assert caught.value.reason == "encrypted"


def test_too_many_pages_are_refused(raw, pdf, lines, monkeypatch):
    monkeypatch.setattr("retrieval.ingest.parse.pdf._MAX_PAGES", 2)
    with pytest.raises(IngestError) as caught:
        parse_pdf(raw(pdf(*[lines("Text.")] * 3), name="a.pdf"))
    assert caught.value.reason == "too_large"
