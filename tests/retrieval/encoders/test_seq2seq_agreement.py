"""Writing texts against the transformers library, on a small T5 with random weights, exported to ONNX."""

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from retrieval.encoders.manifest import Seq2SeqManifest, file_sha256, write_manifest
from retrieval.encoders.seq2seq import load_seq2seq

_WORDS = 200
_FILES = ("encoder_model.onnx", "decoder_model.onnx", "tokenizer.json")
TEXTS = ["w7 w31 w8", "w120 w9 w9 w14 w100 w55 w3", " ".join(f"w{number}" for number in range(3, 60))]


@pytest.fixture(scope="module")
def t5():
    torch = pytest.importorskip("torch", reason="needs the torch extra")
    transformers = pytest.importorskip("transformers", reason="needs the torch extra")
    torch.manual_seed(5)
    sizes = {"vocab_size": _WORDS, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    config = transformers.T5Config(**sizes, decoder_start_token_id=0, tie_word_embeddings=False)
    model = transformers.T5ForConditionalGeneration(config).eval().requires_grad_(requires_grad=False)
    # Random weights as they come let one token win everywhere.
    for weights in model.parameters():
        weights.normal_(0, 0.5)
    return model


def export(t5, directory):
    """Write both halves, with the names of inputs and outputs that optimum gives them."""
    import torch

    class Reads(torch.nn.Module):
        def forward(self, ids, mask):
            return t5.encoder(input_ids=ids, attention_mask=mask).last_hidden_state

    class Writes(torch.nn.Module):
        def forward(self, ids, states, mask):
            known = (states,)
            return t5(decoder_input_ids=ids, encoder_outputs=known, attention_mask=mask, use_cache=False).logits

    def write(module, inputs, names, output):
        axes = {name: {0: "texts", 1: f"of_{name}"} for name in (*names, output)}
        torch.onnx.export(
            module.eval(),
            inputs,
            str(directory / f"{'encoder' if isinstance(module, Reads) else 'decoder'}_model.onnx"),
            input_names=names,
            output_names=[output],
            dynamic_axes=axes,
            opset_version=17,
            dynamo=False,  # the newer exporter needs one more library
        )

    ids, mask = torch.tensor([[3, 4, 5], [6, 7, 1]]), torch.ones(2, 3, dtype=torch.int64)
    write(Reads(), (ids, mask), ["input_ids", "attention_mask"], "last_hidden_state")
    names = ["input_ids", "encoder_hidden_states", "encoder_attention_mask"]
    write(Writes(), (ids[:, :2], torch.randn(2, 3, 32), mask), names, "logits")


@pytest.fixture(scope="module")
def directory(t5, tmp_path_factory):
    directory = tmp_path_factory.mktemp("t5")
    export(t5, directory)
    words = ["<pad>", "</s>", "<unk>", *(f"w{number}" for number in range(3, _WORDS))]
    tokenizer = Tokenizer(WordLevel({word: row for row, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.add_special_tokens(["<pad>", "</s>", "<unk>"])
    tokenizer.post_processor = TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer.save(str(directory / "tokenizer.json"))
    manifest = Seq2SeqManifest(
        name="t5",
        max_tokens=64,
        batch_tokens=0,
        quantisation="none",
        source="a test",
        source_sha256="0" * 64,
        licence="none",
        files={name: file_sha256(directory / name) for name in _FILES},
        prefix="",
        start_token=0,
        end_token=1,
        max_new_tokens=12,
    )
    write_manifest(manifest, directory)
    return directory


@pytest.mark.filterwarnings("ignore")
def test_the_likeliest_text_is_that_of_transformers(t5, directory):
    import torch

    model = load_seq2seq(directory)
    written = set()
    for text in TEXTS:
        ids = torch.tensor([[int(word[1:]) for word in text.split()] + [1]])
        theirs = t5.generate(ids, max_new_tokens=12, do_sample=False, num_beams=1)[0].tolist()[1:]
        theirs = theirs[: theirs.index(1)] if 1 in theirs else theirs
        (ours,) = model.write(text, count=1)
        assert ours.split() == [f"w{token}" for token in theirs if token > 2]
        written.add(ours)
    assert len(written - {""}) == len(TEXTS)
