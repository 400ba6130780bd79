from hypothesis import given
from hypothesis import strategies as st

from retrieval.ingest.chunk.spans import Piece, sentence_starts, split, tokenised, whole
from retrieval.text.document import Block, BlockKind


class Characters:
    """Every character that is no white space is a token."""

    def token_spans(self, text):
        return [(place, place + 1) for place, character in enumerate(text) if not character.isspace()]


def source(text, counter, kind=BlockKind.PARAGRAPH):
    return tokenised(Block(kind, text), counter)


def texts(pieces):
    return [piece.text for piece in pieces]


def test_prose_is_cut_at_sentences(counter):
    text = "One is here. Two (too)! “Three?” No. 4 e.g. four. Five."
    pieces = split(source(text, counter), 20)
    assert texts(pieces) == ["One is here. ", "Two (too)! ", "“Three?” ", "No. ", "4 e.g. four. ", "Five."]


def test_code_is_cut_at_lines_with_their_indentation(counter):
    pieces = split(source("def f(x):\n    return x. Y\n\nprint()", counter, BlockKind.CODE), 20)
    assert texts(pieces) == ["def f(x):\n", "    return x. Y\n\n", "print()"]


def test_a_long_sentence_is_cut_before_words():
    pieces = split(source("abcd efgh ijkl mnop", Characters()), 9)
    assert texts(pieces) == ["abcd efgh ", "ijkl mnop"]


def test_a_word_that_is_too_long_is_cut_anywhere():
    assert texts(split(source("abcdefghij", Characters()), 4)) == ["abcd", "efgh", "ij"]


def test_sentences_are_found_between_two_tokens(counter):
    found = source("One two. Three four. Five six. Seven.", counter)
    assert sentence_starts(found, 2, 5) == [2, 4]
    assert sentence_starts(found, 3, 4) == []


def test_a_long_block_is_tokenised_in_windows(counter):
    text = "word " * 100_000
    found = source(text, counter)
    assert len(found.starts) == 100_000
    assert list(found.starts[-2:]) == [499_990, 499_995]


def test_a_monstrous_token_counts_once_for_every_64_characters(counter):
    assert len(source("x" * 1000, counter).starts) == 16


def test_white_space_behind_a_token_counts_with_it(counter):
    assert list(source("x" + " " * 200 + "y", counter).starts) == [0, 64, 128, 192, 201]


def test_indentation_and_words_of_a_usual_length_count_as_the_tokenizer_says(counter):
    text = " " * 40 + "return incomprehensibilities" + " " * 40 + "# why"
    assert len(source(text, counter).starts) == 4


@given(st.text(alphabet=" \n\tab.?!", max_size=80), st.integers(1, 9), st.sampled_from(BlockKind))
def test_the_pieces_are_the_text(text, max_length, kind):
    found = source(text, Characters(), kind)
    pieces = split(found, max_length)
    assert all(0 < piece.tokens <= max_length for piece in pieces)
    assert "".join(texts(pieces)) == (text if pieces else "")
    assert sum(piece.tokens for piece in pieces) == whole(found).tokens


def test_a_piece_is_a_view(counter):
    piece = Piece(source("One two three.", counter), 1, 3)
    assert (piece.text, piece.tokens) == ("two three.", 2)
