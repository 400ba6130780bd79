import pytest

from retrieval.ingest.parse.markdown import blocks_of_markdown, parse_markdown


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("Some *soft* and **hard** words", "Some soft and hard words"),
        ("A [link](http://x.example) and ![a picture](p.png)", "A link and a picture"),
        ("Call `f(x)` on\ntwo lines", "Call f(x) on two lines"),
        ("Two  \nlines and<br>three", "Two\nlines and\nthree"),
        ("A <b>tag</b> and a <placeholder>", "A tag and a <placeholder>"),
        ("> quoted", "quoted"),
        ("&lt; &amp; \\*", "< & *"),
    ],
)
def test_markup_is_read_away(markdown, text, shape):
    assert shape(blocks_of_markdown(markdown)) == [("paragraph", text)]


def test_headings_have_levels(shape):
    assert shape(blocks_of_markdown("# One\n\nTwo\n---\n\n### `three` x\n")) == [(1, "One"), (2, "Two"), (3, "three x")]


def test_a_list_is_one_block_with_its_markers(shape):
    markdown = "- one\n- two\n  - inner\n- three\n\n  more of three\n"
    assert shape(blocks_of_markdown(markdown)) == [("list", "- one\n- two\n  - inner\n- three\n  more of three")]


def test_numbers_of_a_list_are_kept_across_code(shape):
    markdown = "3. Stop:\n\n   ```\n   kill\n   ```\n\n4. Start\n"
    assert shape(blocks_of_markdown(markdown)) == [("list", "3. Stop:"), ("code", "kill"), ("list", "4. Start")]


def test_code_keeps_its_lines(shape):
    assert shape(blocks_of_markdown("```python\ndef f():\n    return 1\n```\n")) == [("code", "def f():\n    return 1")]


def test_a_table_has_its_header():
    (table,) = blocks_of_markdown("| a | b |\n|---|---|\n| `1` | x \\| y |\n| 2 | |\n")
    assert table.kind == "table"
    assert table.text == "a | b\n1 | x | y\n2 |"
    assert table.header == "a | b"


@pytest.mark.parametrize("delimiter", ["", ":--- | : --- :\n"])
def test_a_table_with_a_bad_delimiter_row_is_still_a_table(delimiter):
    (table,) = blocks_of_markdown(f"| a | b\n{delimiter}| 1 | 2\n")
    assert (table.kind, table.text) == ("table", "a | b\n1 | 2")


def test_html_inside_is_read_as_html(shape):
    markdown = "<details>\n<summary>More</summary>\n\n- *one*\n\n</details>\n\n<!-- hidden -->\n"
    assert shape(blocks_of_markdown(markdown)) == [("paragraph", "More"), ("list", "- one")]


def test_a_paragraph_of_brackets_costs_no_time(shape):
    ((kind, text),) = shape(blocks_of_markdown("[" * 300_000))
    assert (kind, len(text)) == ("paragraph", 300_000)


def test_a_page_of_a_site_is_read(raw, shape):
    front_matter = "---\nlayout: default\ntitle: Bool\nnav_order: 1\n---\n"
    document = parse_markdown(raw(f"{front_matter}\n# Boolean query\n\nText. {{% include x.html %}}\n{{: .note}}\n"))
    assert document.title == "Bool"
    assert document.source_type == "markdown"
    assert document.metadata == {"layout": "default", "nav_order": "1"}
    assert shape(document) == [(1, "Boolean query"), ("paragraph", "Text.")]


def test_the_title_heading_is_not_repeated(raw, shape):
    document = parse_markdown(raw("# Rules\n\nText.\n\n## More\n\nText.\n"))
    assert document.title == "Rules"
    assert shape(document) == [("paragraph", "Text."), (2, "More"), ("paragraph", "Text.")]


def test_another_encoding_is_read(raw, shape):
    document = parse_markdown(raw("# Größe\n\nÜber Maße und Größen läßt sich streiten.\n".encode("cp1252")))
    assert document.title == "Größe"
