"""What texts may be speaking of."""

from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from retrieval.graph import mentions
from retrieval.graph.mentions import MAX_KEYS, Mentions, mentions_of, occurrences
from retrieval.graph.spans import key_of, number_of, words_of


def numbers(*names):
    return {number_of(key_of(name)) for name in names}


def test_phrases_come_first_then_their_parts():
    found = mentions_of("once Guy of Tuscany came.")
    assert set(found.keys[: found.phrases]) == numbers("Guy of Tuscany")
    assert set(found.keys) == numbers("Guy of Tuscany", "Guy", "Tuscany", "Guy of Tuscany came", "Tuscany came")
    assert number_of("of tuscany") not in found.keys


def test_a_plain_word_may_follow():
    assert numbers("Expense policy") <= set(mentions_of("See the Expense policy for it.").keys)


def test_identifiers_count_in_any_case():
    assert numbers("scope_for", "corecube.access") <= set(mentions_of("call scope_for from corecube.access now").keys)


def test_a_text_in_capitals_has_identifiers_alone():
    assert mentions_of("THE USERS OF LIBRARIES IN TURIN") == Mentions()
    assert mentions_of("THE USERS OF LIBRARIES, SEE E-4711").keys == mentions_of("see E-4711").keys


def test_plain_lower_case_words_are_no_names():
    assert mentions_of("nothing here is a name").keys == ()


def test_the_longest_name_counts():
    keys = {"new york", "new york times", "york"}
    assert [it.key for it in occurrences("The New York Times of New York.", keys)] == ["new york times", "new york"]


def test_a_name_stands_there_capitalised_unless_any_case_will_do():
    assert occurrences("a new york minute", {"new york"}) == []
    assert len(occurrences("a new york minute", {"new york"}, any_case=True)) == 1


@given(st.text(max_size=400))
def test_there_are_never_too_many_keys_and_each_is_there_once(text):
    found = mentions_of(text)
    assert len(found.keys) <= MAX_KEYS
    assert len(set(found.keys)) == len(found.keys)
    assert 0 <= found.phrases <= len(found.keys)


@given(st.lists(st.sampled_from(["Guy", "of", "Tuscany", "the", "Rome", ".", "\n", "spoke"]), max_size=12))
def test_a_capitalised_name_in_a_text_is_among_its_keys(words):
    text = " ".join(words)
    found = mentions_of(text).keys
    assert all(number_of(place.key) in found for place in occurrences(text, {"guy", "rome", "tuscany"}))


@given(st.text("aAbB \u00e9\u00c9\u00df\u0130\ufb01\u6771_-.1\u2019\u03a3\u03c2\u0301", max_size=30), st.data())
def test_names_are_found_in_a_folded_text_as_word_by_word(text, data):
    words = [word.form for word in words_of(text)]
    spans = st.tuples(st.integers(0, len(words)), st.integers(1, 3)).map(lambda it: " ".join(words[it[0] : sum(it)]))
    keys = data.draw(st.sets(spans, max_size=4))
    with mock.patch.object(mentions, "folded", return_value=None):
        expected = [occurrences(text, keys, any_case=any_case) for any_case in (False, True)]
    assert [occurrences(text, keys, any_case=any_case) for any_case in (False, True)] == expected
