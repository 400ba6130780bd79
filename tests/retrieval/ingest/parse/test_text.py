import pytest

from retrieval.ingest.parse.text import parse_text


def test_paragraphs_stand_between_blank_lines(raw, shape):
    document = parse_text(raw("one\r\n  indented\r\n\r\n \r\ntwo\n", name="notes/shift-plan.txt"))
    assert document.title == "Shift plan"
    assert document.source_type == "text"
    assert shape(document) == [("paragraph", "one\n  indented"), ("paragraph", "two")]


def test_a_small_file_in_another_encoding_is_read(raw):
    content = "名前,年齢,住所\r\n佐藤太郎,30,東京\r\n三木英子,25,大阪\r\n".encode("cp932")
    assert parse_text(raw(content, name="a.csv")).blocks[0].text.startswith("名前,年齢,住所\n佐藤太郎,30")


def test_the_source_may_name_the_encoding(raw):
    document = parse_text(raw(b"caf\xe9", name="a.txt", media_type="text/plain; charset=latin-1"))
    assert document.blocks[0].text == "café"


def test_headings_are_underlined_numbered_or_in_capitals(raw, shape):
    text = """HOUSE RULES

Times
-----
We open at nine.

KEYS
Keep them with you.

2. Visits

2.1. Who may visit?

Friends may.

1. Ring.

2. Wait.

THE END OF
THE RULES

4. Nothing below"""
    document = parse_text(raw(text, name="house-rules.txt"))
    assert document.title == "House rules"
    assert shape(document) == [
        (2, "Times"),
        ("paragraph", "We open at nine."),
        (1, "KEYS"),
        ("paragraph", "Keep them with you."),
        (1, "2. Visits"),
        (2, "2.1. Who may visit?"),
        *(
            ("paragraph", it)
            for it in ("Friends may.", "1. Ring.", "2. Wait.", "THE END OF\nTHE RULES", "4. Nothing below")
        ),
    ]


def test_a_name_above_a_text_without_sections_is_no_heading(raw, shape):
    text = "MONTH-END CLOSE\n\nInvoices leave at two."
    assert {kind for kind, _ in shape(parse_text(raw(text, name="a.txt")))} == {"paragraph"}


@pytest.mark.parametrize(
    "text",
    [
        "Name            Reach\n=====================\nfoo 377",  # A table with wide blanks
        "12 Main Street\n\nOslo",
        "It ends here.\n--\nAnn",
        "NB",
        "1. Debugger\n2. Compiler\n\nBoth are free.",
        "DSA (\u5225\u540d DSS) \u306f\u96fb\u5b50\u7f72\u540d",
        "| A turtle that was intelligent |\n| found programming a hurdle     |",
        "+---+\n|A|--->|\n|B|\n+---+",
    ],
)
def test_other_lines_are_no_headings(raw, shape, text):
    assert {kind for kind, _ in shape(parse_text(raw(text, name="a.txt")))} == {"paragraph"}


def test_words_that_a_manual_page_broke_are_whole(raw, shape):
    document = parse_text(raw("tcp ports 80 and 8080 in\u2010\n       clusive  and\n       more", name="a.txt"))
    assert shape(document) == [("paragraph", "tcp ports 80 and 8080 inclusive\n       and\n       more")]


@pytest.mark.parametrize(
    ("drawn", "rows"),
    [
        (
            "\u250c\u2500\u252c\u2500\u2510\n\u2502Space\u2502Times\u2502\n\u251c\u2500\u2524\n\u25024 GB\u25024\u2502",
            "Space | Times\n4 GB | 4",
        ),
        (
            "+---+---+\n| a | b |\n+---+---+\n| 1 | 2 |\n|   | 3 |\n+---+---+\n| 4 | 5 |\n+---+---+",
            "a | b\n1 | 2 3\n4 | 5",
        ),
        ("+---+---+\n| a | b |\n+---+---+\n| 1 | 2 |\n| 3 | 4 |\n+---+---+", "a | b\n1 | 2\n3 | 4"),
    ],
)
def test_a_table_with_borders_is_a_table(raw, shape, drawn, rows):
    document = parse_text(raw(f"Before it:\n{drawn}\nAfter it.", name="a.txt"))
    assert shape(document) == [("paragraph", "Before it:"), ("table", rows), ("paragraph", "After it.")]


def test_dotted_leaders_join_cells_and_a_table_of_contents_is_left_out(raw, shape):
    wardens = "Shop ...... Priya Raman\nOffice .... Paul Brandt"
    contents = "1 Rules . . . . . . . 3\n2 Times of the house\nand garden . . . . . 4\n3 Keys . . . . . . . 9"
    assert shape(parse_text(raw(f"{wardens}\n\n{contents}", name="a.txt"))) == [
        ("table", "Shop | Priya Raman\nOffice | Paul Brandt")
    ]
    prices = "Tea ..... 3\nCake .... 5\nSoup .... 4"
    assert shape(parse_text(raw(prices, name="a.txt"))) == [("table", "Tea | 3\nCake | 5\nSoup | 4")]


def test_marks_of_items_are_bullets(raw, shape):
    text = "  o a clock\n    with hands\n  o a driver\n\n\u25aa one\n\u25e6  two\n\no gato\nou o cachorro"
    assert [text for _, text in shape(parse_text(raw(text, name="a.txt")))] == [
        "\u2022 a clock\n    with hands\n  \u2022 a driver",
        "\u2022 one\n\u2022 two",
        "\u2022 gato\nou o cachorro",
    ]
