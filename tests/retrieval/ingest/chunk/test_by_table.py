import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from retrieval.ingest.chunk import chunk
from retrieval.text.document import Block, BlockKind, ChunkLimits, ParsedDocument


class Words:
    """Every word is a token."""

    def token_spans(self, text):
        return [found.span() for found in re.finditer(r"\S+", text)]


def heading(text, level=2):
    return Block(BlockKind.HEADING, text, level=level)


def table(rows, first_row=2, header="City Sales"):
    lines = [f"c{row} {row}" for row in range(first_row, first_row + rows)]
    return Block(BlockKind.TABLE, "\n".join([header, *lines] if header else lines), header=header, row=first_row)


def drafts(*blocks, target=40, limit=60):
    document = ParsedDocument("Budget", blocks, "excel")
    return chunk(document, Words(), ChunkLimits(target=target, limit=limit, overlap=6))


def test_sheets_never_share_a_chunk():
    made = drafts(heading("Plan"), table(2), heading("Real"), table(3))
    assert [(draft.heading_path, draft.row_start, draft.row_end) for draft in made] == [
        (("Plan",), 2, 3),
        (("Real",), 2, 4),
    ]


def test_small_regions_of_a_sheet_stand_together():
    (draft,) = drafts(heading("Plan"), heading("Costs", 3), table(2), heading("Gains", 3), table(2, first_row=9))
    assert (draft.heading_path, draft.row_start, draft.row_end) == (("Plan", "Costs · Gains"), 2, 10)
    assert draft.text == "Costs\n\nCity Sales\nc2 2\nc3 3\n\nGains\n\nCity Sales\nc9 9\nc10 10"


def test_a_table_that_fits_is_whole():
    (draft,) = drafts(heading("Plan"), table(29))
    assert (draft.token_count, draft.row_start, draft.row_end) == (60, 2, 30)


def test_a_cut_table_repeats_its_header_and_says_its_rows():
    made = drafts(heading("Plan"), table(100))
    assert len(made) > 4
    assert all(draft.text.startswith("City Sales\n") for draft in made)
    for draft in made:
        rows = draft.text.splitlines()[1:]
        assert rows[0] == f"c{draft.row_start} {draft.row_start}"
        assert rows[-1] == f"c{draft.row_end} {draft.row_end}"
    assert made[0].row_start == 2
    assert made[-1].row_end == 101
    assert all(one.row_end + 1 == other.row_start for one, other in pairwise(made))


def test_text_before_any_sheet_is_kept():
    made = drafts(Block(BlockKind.LIST, "a note", row=1), heading("Plan"), table(2))
    assert [(draft.text.split("\n")[0], draft.row_start) for draft in made] == [("a note", 1), ("City Sales", 2)]


def test_a_sheet_without_cells_leaves_its_name():
    assert drafts(heading("Plan"))[0].text == "Plan"


@given(
    st.lists(st.tuples(st.integers(1, 80), st.integers(1, 500), st.booleans()), min_size=1, max_size=4),
    st.integers(8, 60),
)
def test_row_numbers_are_those_of_the_rows_in_the_text(shapes, target):
    blocks = [heading("Plan")]
    first = 1
    for rows, gap, has_header in shapes:
        first += gap
        blocks.append(table(rows, first_row=first, header="City Sales" if has_header else ""))
        first += rows
    for draft in drafts(*blocks, target=target, limit=2 * target):
        found = [int(number) for number in re.findall(r"c(\d+)", draft.text)]
        assert (draft.row_start, draft.row_end) == (min(found), max(found))
