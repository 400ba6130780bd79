"""Reading a query: what retrieval reads of it, its syntax, and the same without."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.engine.query import cut, read_query

#: Texts in which syntax is likely.
_PIECES = st.sampled_from(
    [
        "roll",
        "-staging",
        "-18",
        "--rm",
        '"',
        '"a b"',
        '-"a b"',
        "OR",
        "or",
        "a-b",
        "\n",
        "e\u0301",
        "漢字",
        "👩‍🔧",
        "''",
    ]
)
_TEXTS = st.one_of(st.text(), st.lists(_PIECES, max_size=30).map(" ".join), st.lists(_PIECES, max_size=30).map("".join))


def read(text, characters=500):
    query = read_query(text, characters=characters)
    return query.plain_text, query.operators


@pytest.mark.parametrize(
    ("text", "plain", "operators"),
    [
        ("rollback -staging", "rollback", 'rollback -"staging"'),
        ('"drain the queue" now', "drain the queue now", '"drain the queue" now'),
        ('release -"dry run" notes', "release notes", 'release -"dry run" notes'),
        ("rollback OR restore", "rollback restore", "rollback OR restore"),
        ("“drain the queue” now", "drain the queue now", '"drain the queue" now'),
        ("on-call -well-known", "on-call", 'on-call -"well-known"'),
        # PostgreSQL would read the minus and the small "or" as operators.
        ("kept at -18 -frozen or cold", "kept at -18 or cold", 'kept at "-18" -"frozen" "or" cold'),
        ('run --rm "a b"', "run --rm a b", 'run "--rm" "a b"'),
        ("a OR OR b -c", "a b", 'a OR b -"c"'),
        ("a OR -b", "a", 'a OR -"b"'),
        # What syntax a phrase holds is text.
        ('"-a OR b" c', "a b c", '"-a OR b" c'),
    ],
)
def test_syntax_is_kept_for_full_text_and_taken_from_the_models(text, plain, operators):
    assert read(text) == (plain, operators)


@pytest.mark.parametrize(
    "text",
    [
        "how do I roll back?",
        "stored at -18 degrees",
        'a 19" rack and a 20" rack',
        '"unbalanced phrase',
        'f"quoted" word',
        '" "',
        "this or that",
        "OR gates",
        "either OR",
        "tar --verbose",
        "a - b",
        "??",
    ],
)
def test_what_is_no_syntax_stays_as_it_is(text):
    assert read(text) == (text, "")


@pytest.mark.parametrize(("text", "plain"), [("-verbose", "verbose"), ('-a -"b c"', "a b c"), ("-a OR -b", "a b")])
def test_a_query_of_exclusions_alone_searches_for_their_words(text, plain):
    assert read(text) == (plain, "")


def test_the_whole_text_is_kept():
    text = "word " * 200
    query = read_query(text, characters=500)
    assert query.text == text
    assert query.retrieval_text == ("word " * 100).rstrip()


@pytest.mark.parametrize(
    ("text", "characters", "expected"),
    [
        ("one two three", 13, "one two three"),
        ("alpha beta gamma", 12, "alpha beta"),
        ("alpha beta", 5, "alpha"),
        ("alpha beta", 6, "alpha"),
        # The last word began too far back: half of it says more than none of it.
        ("a bcdefghijkl", 10, "a bcdefghi"),
        ("漢字" * 10, 5, "漢字漢字漢"),
        ("nai\u0308ve", 3, "na"),
        ("x\u0301\u0302", 2, "x\u0301"),
        ("ab👩\u200d🔧", 4, "ab"),
        ("ab👍🏽", 3, "ab"),
    ],
)
def test_a_cut_ends_at_a_word_and_never_inside_a_letter(text, characters, expected):
    assert cut(text, characters) == expected


def test_a_phrase_that_is_cut_in_two_is_no_phrase():
    assert read('"' + "abc " * 20 + '"', characters=50)[1] == ""


@given(_TEXTS, st.integers(1, 60))
def test_a_cut_is_a_beginning_within_the_limit(text, characters):
    beginning = cut(text, characters)
    assert text.startswith(beginning)
    assert len(beginning) <= characters
    assert cut(beginning, characters) == beginning


@given(_TEXTS.filter(str.strip), st.integers(1, 60))
def test_any_text_is_read(text, characters):
    query = read_query(text, characters=characters)
    assert query.text == text
    assert len(query.plain_text) <= len(query.retrieval_text) <= characters


@given(_TEXTS)
def test_plain_text_has_no_syntax_left_and_reads_as_itself(text):
    plain = read_query(text, characters=500).plain_text
    again = read_query(plain, characters=500)
    assert (again.plain_text, again.operators) == (plain, "")


@given(st.text(alphabet="ab\u0301\u0302 ", max_size=40), st.integers(1, 20))
def test_no_accent_is_parted_from_its_letter(text, characters):
    beginning = cut(text, characters)
    rest = text[len(beginning) :]
    # Only a letter with more accents than the limit has to be taken apart.
    if rest and unicodedata.combining(rest[0]):
        assert all(map(unicodedata.combining, beginning[1:]))


def test_a_query_is_read_in_the_form_in_which_documents_are_stored():
    decomposed = unicodedata.normalize("NFD", "Überstunden")
    assert read_query(decomposed, characters=500).for_models == "Überstunden"
