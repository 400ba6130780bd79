"""Code-aware chunks. Tokens are words; the target is 40 of them, the most 60."""

import re

from hypothesis import given
from hypothesis import strategies as st

from retrieval.ingest.chunk import chunk
from retrieval.ingest.parse import parse
from retrieval.text.document import ChunkLimits, RawDocument


class Words:
    """Every word is a token."""

    def token_spans(self, text):
        return [found.span() for found in re.finditer(r"\S+", text)]


LIMITS = ChunkLimits(target=40, limit=60, overlap=6)


def function(name, words, indent=""):
    """Return a function of so many words; two are `def name():`."""
    lines = "".join(f"{indent}    {name}{number}\n" for number in range(words - 2))
    return f"{indent}def {name}():\n{lines}\n"


def chunks(counter, text, name="shop/cart.py", limits=LIMITS):
    return chunk(parse(RawDocument(name, text.encode())), counter, limits)


def shown(drafts):
    return [(draft.heading_path, draft.row_start, draft.row_end, draft.token_count) for draft in drafts]


def test_a_small_file_is_one_chunk_that_names_its_functions(counter):
    (draft,) = chunks(counter, f"import os\n\n\n{function('load', 5)}{function('save', 5)}")
    assert draft.heading_path == ("load, save",)
    assert (draft.row_start, draft.row_end) == (1, 12)
    assert draft.text.startswith("import os\n\ndef load():\n    load0\n")


def test_functions_are_chunks_of_their_own_and_imports_go_with_the_first(counter):
    drafts = chunks(counter, f"import os\n\n{function('load', 30)}{function('save', 35)}")
    assert shown(drafts) == [(("load",), 1, 31, 32), (("save",), 33, 66, 35)]


def test_a_function_is_kept_whole_up_to_the_most(counter):
    drafts = chunks(counter, f"{function('load', 58)}{function('save', 30)}")
    assert [draft.token_count for draft in drafts] == [58, 30]


def test_a_large_function_is_cut_under_the_line_that_opens_it(counter):
    body = "".join(f"    if a{number}:\n        {'run() ' * 4}{'x' * 120}\n" for number in range(20))
    drafts = chunks(counter, f"def big(x):\n{body}")
    assert len(drafts) > 2
    assert {draft.heading_path for draft in drafts} == {("big",)}
    assert all(draft.text.startswith("def big(x):\n    …\n    if a") for draft in drafts[1:])
    assert all(draft.token_count <= 60 for draft in drafts)
    assert [draft.row_start for draft in drafts[1:]] == [draft.row_end + 1 for draft in drafts[:-1]]


def test_a_large_class_is_cut_between_its_methods_under_its_own_line(counter):
    text = f'class Cart(Base):\n    """Holds."""\n\n{function("add", 20, "    ")}{function("drop", 30, "    ")}'
    first, second = chunks(counter, text)
    assert (first.heading_path, second.heading_path) == (("Cart", "add"), ("Cart", "drop"))
    assert first.text.startswith('class Cart(Base):\n    """Holds."""\n\n    def add():')
    assert second.text.startswith("class Cart(Base):\n    …\n    def drop():\n        drop0")
    assert (second.row_start, second.token_count) == (24, 33)


def test_what_follows_a_class_is_not_the_classes(counter):
    text = f"class Cart:\n{function('add', 36, '    ')}\n{function('late', 36)}"
    assert [draft.heading_path for draft in chunks(counter, text)] == [("Cart", "add"), ("late",)]


def test_a_few_lines_at_the_end_join_their_neighbour(counter):
    drafts = chunks(counter, f"{function('load', 39)}if main:\n    load()\n")
    assert len(drafts) == 1
    assert drafts[0].text.endswith("\n\nif main:\n    load()")


def test_many_names_are_no_path(counter):
    text = "".join(function(f"f{number}", 4) for number in range(8))
    assert chunks(counter, text)[0].heading_path == ()


def test_the_chunks_of_a_long_list_of_values_are_bounded(counter):
    text = "VALUES = [\n" + "".join(f"    {number},\n" for number in range(500)) + "]\n"
    drafts = chunks(counter, text)
    assert len(drafts) < 25
    assert drafts[-1].row_end == 502


@given(st.lists(st.tuples(st.sampled_from(["f", "m", "C", "x"]), st.integers(3, 70)), max_size=12), st.integers(10, 60))
def test_every_line_stands_in_a_chunk_and_none_is_too_large(parts, target):
    text = "".join(
        {
            "f": function(f"f{place}", size),
            "m": f"class A{place}:\n{function(f'm{place}', size, '    ')}{function(f'n{place}', 9, '    ')}",
            "C": f"class C{place}:\n    a = 1\n",
            "x": f"x{place} = 1\n\n",
        }[kind]
        for place, (kind, size) in enumerate(parts)
    )
    if not text:
        return
    limits = ChunkLimits(target=target, limit=2 * target, overlap=target // 4)
    drafts = chunks(Words(), text, limits=limits)
    lines = text.split("\n")
    covered = set()
    for draft in drafts:
        assert draft.token_count <= limits.limit
        covered |= set(range(draft.row_start, draft.row_end + 1))
        assert {line.strip() for line in lines[draft.row_start - 1 : draft.row_end]} - {""} <= {
            line.strip() for line in draft.text.split("\n")
        }
    assert {number for number, line in enumerate(lines, start=1) if line.strip()} <= covered
