import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.index.bm25.spelling import MAX_NAME_LENGTH, humps, spellings


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("set retry_limit to 3.", ["retry_limit"]),
        ("src/app/main.py", ["src/app/main.py", "app/main.py", "main.py"]),
        ("main.py:120: ValueError", ["main.py:120", "main.py", "py:120"]),
        ("retrieval.models.Entry", ["retrieval.models.entry", "models.entry"]),
        ("1.2.3-rc1 and v2.0", ["1.2.3-rc1", "v2.0"]),
        ("ERR_REFUSED, E-4711", ["err_refused", "e-4711"]),
        ("C++ or C# (or F#)", ["c++", "c#", "f#"]),
        ("48,200 crowns; 1,2,3", ["48,200"]),
        (r"C:\Users\x", ["c:\\users\\x", "users\\x"]),
        ("std::vector<int>", ["std::vector"]),
        ("mail a@b.org", ["mail", "a@b.org", "b.org"][1:]),
        ("--dry-run", ["dry-run"]),
        ("A plain sentence, with words.", []),
        ("x" * 150 + "_" + "y" * 100, []),
    ],
)
def test_what_is_joined_by_signs_is_found_whole_and_by_its_ends(text, found):
    assert spellings(text) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("OutboxEntry parseHTTPResponse", ["outbox", "entry", "parse", "http", "response"]),
        ("HTTPServer", ["http", "server"]),
        ("mRNA", ["rna"]),
        ("sha256Sum", ["sha", "256", "sum"]),
        ("Plain words, PDFs and NATO", []),
        ("retry_limit", []),
    ],
)
def test_humps_are_taken_apart(text, words):
    assert humps(text) == words


@given(st.text(max_size=400))
def test_any_text_can_be_read(text):
    assert all(len(it) <= MAX_NAME_LENGTH * 2 and it == it.lower() and not it.isspace() for it in spellings(text))
    assert all(it == it.lower() for it in humps(text))


@given(st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), min_size=2, max_size=6), st.sampled_from("-_./:@"))
def test_a_name_finds_itself_wherever_it_stands(words, sign):
    name = sign.join(words)
    assert set(spellings(name)) <= set(spellings(f"The ({name}), it says, holds."))
    assert name in spellings(name)
