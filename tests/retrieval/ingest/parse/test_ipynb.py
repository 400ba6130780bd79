import json
from time import perf_counter

import pytest

from retrieval.errors import IngestError
from retrieval.ingest.parse import parse
from retrieval.text.document import RawDocument


def read(*cells, **notebook):
    content = json.dumps({"cells": cells, "metadata": {"language_info": {"name": "python"}}, **notebook})
    return parse(RawDocument("work.ipynb", content.encode()))


def code(source, *outputs):
    return {"cell_type": "code", "source": source, "outputs": outputs}


def test_markdown_code_and_outputs_follow_one_another(shape):
    document = read(
        {"cell_type": "markdown", "source": ["# Sales\n", "Some *text*.\n", "\n", "## By year"]},
        code(["x = 1\n", "x"], {"output_type": "execute_result", "data": {"text/plain": ["1"], "image/png": "iVBOR"}}),
        {"cell_type": "raw", "source": "Raw."},
    )
    assert shape(document) == [
        ("paragraph", "Some text."), (2, "By year"), ("code", "x = 1\nx"), ("code", "1"), ("paragraph", "Raw."),
    ]  # fmt: skip
    assert (document.title, document.source_type) == ("Sales", "notebook")
    assert document.metadata == {"programming_language": "python"}


def test_images_are_left_out_and_errors_keep_their_message(shape):
    document = read(
        code("plot()", {"output_type": "display_data", "data": {"image/png": "iVBOR" * 1000}}),
        code("f()", {"output_type": "error", "ename": "KeyError", "evalue": "'a'", "traceback": ["long"] * 99}),
    )
    assert shape(document) == [("code", "plot()"), ("code", "f()"), ("code", "KeyError: 'a'")]


def test_what_a_cell_printed_is_cut(shape):
    streams = [{"output_type": "stream", "text": "a" * 1500}] * 3
    texts = [text for _, text in shape(read(code("x", *streams)))]
    assert [len(text) for text in texts] == [1, 1500, 502]
    assert texts[2].endswith("a\n…")


def test_the_older_format_is_read(shape):
    cell = {"cell_type": "code", "input": ["y = 2"], "outputs": [{"output_type": "stream", "text": ["2"]}]}
    document = read(worksheets=[{"cells": [{"cell_type": "heading", "source": "T", "level": 2}, cell]}])
    assert shape(document) == [(2, "T"), ("code", "y = 2"), ("code", "2")]


@pytest.mark.parametrize(
    "content", [b"[]", b"{}", b'{"cells": 3}', b"{", b"[" * 100_000, b'{"cells": ["x"]}', b'{"cells": [{"source": 3}]}']
)
def test_what_is_no_notebook_is_refused(content):
    with pytest.raises(IngestError) as caught:
        parse(RawDocument("a.ipynb", content))
    assert caught.value.reason in {"corrupt", "empty"}


def test_ten_thousand_cells_take_seconds():
    cells = [{"cell_type": "markdown", "source": f"# Head {place}\n\nText."} for place in range(5_000)]
    printed = {"output_type": "stream", "text": "line\n" * 1_000}
    started = perf_counter()
    document = read(*cells, *[code(f"x = {place}", printed) for place in range(5_000)])
    assert len(document.blocks) == 20_000 - 1
    assert perf_counter() - started < 20


def test_too_many_cells_are_refused():
    with pytest.raises(IngestError) as caught:
        read(*[code("x")] * 20_001)
    assert caught.value.reason == "too_large"
