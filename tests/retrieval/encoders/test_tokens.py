import pytest

from retrieval.encoders.tokenizer import ModelTokenizer
from retrieval.errors import EncoderError

# The tiny vocabulary's ids: [UNK] 1, [CLS] 2, [SEP] 3, alpha 4, beta 5, ##s 6.


@pytest.fixture
def tokenizer(make_model):
    return ModelTokenizer(make_model() / "tokenizer.json", max_tokens=5)


def test_a_text_gets_its_special_tokens(tokenizer):
    assert tokenizer.encode(["Alphas beta", ""]) == [[2, 4, 6, 5, 3], [2, 3]]


def test_a_long_text_is_cut_before_the_end_mark(tokenizer):
    assert tokenizer.encode(["alpha beta " * 10]) == [[2, 4, 5, 4, 3]]


def test_tokens_are_counted_without_special_tokens_and_uncut(tokenizer):
    assert tokenizer.count(["alphas beta", "", "alpha beta " * 10]) == [3, 0, 20]


def test_spans_are_characters_of_the_text_as_it_was_given(tokenizer):
    text = "ÄÖ 😀 Alphas"
    spans = tokenizer.spans(text)
    assert [text[start:end] for start, end in spans] == ["ÄÖ", "😀", "Alpha", "s"]


def test_a_text_that_spells_a_special_token_is_ordinary_text(tokenizer):
    assert 3 not in tokenizer.encode(["[SEP]"])[0][:-1]


def test_padding_and_cutting_in_the_tokenizer_file_are_ignored(make_model, make_tokenizer):
    path = make_model() / "tokenizer.json"
    fixed = {"strategy": {"Fixed": 4}, "direction": "Right", "pad_to_multiple_of": None}
    padding = fixed | {"pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
    cutting = {"max_length": 3, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    make_tokenizer(path, truncation=cutting, padding=padding)
    tokenizer = ModelTokenizer(path, max_tokens=5)
    assert tokenizer.encode(["alpha", "alpha beta alpha"]) == [[2, 4, 3], [2, 4, 5, 4, 3]]
    assert tokenizer.count(["alpha beta alpha"]) == [3]


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\x00"])
def test_a_damaged_tokenizer_is_an_encoder_error(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(EncoderError, match="cannot be read"):
        ModelTokenizer(path, max_tokens=5)
