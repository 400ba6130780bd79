import pytest

from retrieval.errors import IngestError
from retrieval.ingest.parse.html import blocks_of_fragment, parse_html

PAGE = """<!DOCTYPE html><html lang="en"><head><title>Queues | Acme</title><meta name="author" content="Ann">
<meta property="article:modified_time" content="2024-05-01"><style>p {}</style></head><body>
<header><a href="/">Acme</a><ul><li>Home</li></ul></header>
<nav>Navigation</nav><div class="sidebar">Side</div>
<main><h1>Queues</h1><p>First <b>bold</b>
   text.</p><h2>Draining</h2><ul><li>one<ul><li>inner</li></ul></li><li>two</li></ul>
<ol start="4"><li>four</li></ol><pre><code>def f():
    return 1</code></pre>
<table><tr><th>Name</th><th>Value</th></tr><tr><td>a</td><td>1</td></tr></table>
<div class="note"><h3>Note</h3><p>Careful.</p></div><script>evil()</script></main>
<footer>Imprint</footer></body></html>"""


def test_a_page_is_read_without_what_surrounds_its_content(raw, shape):
    document = parse_html(raw(PAGE, name="q.html"))
    assert document.title == "Queues"
    assert document.metadata == {"language": "en", "author": "Ann", "modified": "2024-05-01"}
    assert shape(document) == [
        ("paragraph", "First bold text."),
        (2, "Draining"),
        ("list", "- one\n  - inner\n- two\n4. four"),
        ("code", "def f():\n    return 1"),
        ("table", "Name | Value\na | 1"),
        ("paragraph", "Note"),
        ("paragraph", "Careful."),
    ]


def test_a_manual_page_without_landmarks_is_read(raw, shape):
    page = """<html><head><title>5.1. Tables</title></head><body id="docContent">
    <div class="navheader"><table><tr><td><a href="p">Prev</a></td></tr></table></div>
    <div class="sect1"><div class="titlepage"><h2 class="title">5.1. Tables</h2></div><p>A table has rows.</p>
    <dl><dt>-e<br/>--echo</dt><dd><p>Echo the commands.</p></dd></dl></div>
    <div class="navfooter">Next</div></body></html>"""
    document = parse_html(raw(page, name="ddl.html"))
    assert document.title == "5.1. Tables"
    assert shape(document) == [("paragraph", "A table has rows."), ("list", "- -e --echo\n  Echo the commands.")]


def test_a_section_about_navigation_is_content(raw, shape):
    # Sphinx makes a section's id of its heading.
    page = f"""<body><nav id="navigation"><h2>Navigation</h2><p>index</p></nav><h1>Editor</h1><p>{"Text. " * 90}</p>
    <section id="editing-and-navigation"><h2>Editing and navigation</h2><p>Arrow keys move.</p></section>
    <div class="section" id="menu"><h2>Menu</h2><p>It has items.</p></div></body>"""
    texts = [text for _, text in shape(parse_html(raw(page, name="a.html")))]
    assert "Arrow keys move." in texts
    assert "It has items." in texts
    assert "index" not in texts


def test_a_page_that_is_all_navigation_is_read_whole(raw):
    links = "".join(f"<li><a href='{n}'>Page {n}</a></li>" for n in range(20))
    document = parse_html(raw(f"<body><ul class='menu'>{links}</ul></body>", name="map.html"))
    assert "Page 7" in document.blocks[0].text


def test_a_list_of_links_beside_the_text_is_dropped(raw, shape):
    links = "".join(f"<li><a href='{n}'>Page {n}</a></li>" for n in range(9))
    page = f"<body><ul>{links}</ul><div><h1>T</h1><p>{'Long text. ' * 30}</p></div></body>"
    assert [kind for kind, _ in shape(parse_html(raw(page, name="a.html")))] == ["paragraph"]


def test_hidden_parts_are_left_out(raw, shape):
    page = "<p hidden>a</p><p style='display: none'>b</p><p aria-hidden='true'>c</p><p style='color: red'>d</p>"
    assert shape(parse_html(raw(page, name="a.html"))) == [("paragraph", "d")]


def test_cells_that_span_are_filled_in():
    (table,) = blocks_of_fragment(
        "<table><thead><tr><th>Region</th><th>Site</th><th>Head</th></tr></thead>"
        "<tr><td rowspan='2'>North</td><td>Oslo</td><td>Ann</td></tr><tr><td colspan='2'>Bergen</td></tr>"
        "<tr><td>South</td><td>Rome</td><td>Bo</td></tr></table>"
    )
    assert table.text == "Region | Site | Head\nNorth | Oslo | Ann\nNorth | Bergen |\nSouth | Rome | Bo"
    assert table.header == "Region | Site | Head"


def test_a_table_for_layout_is_looked_into(shape):
    fragment = (
        "<table><tr><td><h2>Left</h2><p>a</p></td><td><table><tr><td>x</td><td>y</td></tr></table></td></tr></table>"
    )
    assert shape(blocks_of_fragment(fragment)) == [(2, "Left"), ("paragraph", "a"), ("table", "x | y")]


def test_a_comment_is_nothing():
    assert blocks_of_fragment("<!-- vale off -->") == []
    assert blocks_of_fragment("</details>") == []


@pytest.mark.parametrize(
    "content",
    [
        '<?xml version="1.0" encoding="ISO-8859-1"?><html><body><p>Gäste</p></body></html>'.encode("latin-1"),
        '<html><head><meta charset="windows-1252"></head><body><p>Gäste</p></body></html>'.encode("cp1252"),
        "<html><body><p>Gäste</p></body></html>".encode("utf-16"),
    ],
)
def test_the_declared_encoding_is_used(content, raw, shape):
    assert shape(parse_html(raw(content, name="a.html"))) == [("paragraph", "Gäste")]


def test_external_entities_are_not_read(raw, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("passphrase")
    page = f'<!DOCTYPE html [<!ENTITY x SYSTEM "file://{secret}">]><html><body><p>A &x; B</p></body></html>'
    assert "passphrase" not in parse_html(raw(page, name="a.html")).blocks[0].text


def test_an_entity_bomb_stays_small(raw):
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    page = f'<!DOCTYPE html [<!ENTITY l0 "lol">{entities}]><html><body><p>A &l11; B</p></body></html>'
    assert len(parse_html(raw(page, name="a.html")).blocks[0].text) < 10_000


def test_deep_nesting_is_read_or_refused_but_ends(raw):
    deep = parse_html(raw("<div>" * 200 + "bottom" + "</div>" * 200, name="a.html"))
    assert deep.blocks[0].text == "bottom"
    with pytest.raises(IngestError):
        parse_html(raw("<div>" * 100_000 + "bottom", name="a.html"))


@pytest.mark.parametrize("control", ["\x01", "&#1;", "&#x0B;", "&#31", "&#xFFFF;"])
def test_control_characters_do_no_harm(control, raw, shape):
    page = (
        f"<p>a{control}b &#10; &#12345; &#x1F600;</p><svg></svg>{control}tail"
        f"<table><tr><td>x{control}<p>y</p></td><td>z</td></tr></table>"
    )
    assert shape(parse_html(raw(page, name="a.html"))) == [
        ("paragraph", "ab \u3039 \U0001f600"),
        ("paragraph", "tail"),
        ("table", "x y | z"),
    ]


def test_a_page_without_text_is_refused(raw):
    with pytest.raises(IngestError) as caught:
        parse_html(raw("<html><body><script>x()</script></body></html>", name="a.html"))
    assert caught.value.reason == "empty"
