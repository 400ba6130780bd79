"""Why the graph lifted a hit, in words."""

from uuid import UUID

import pytest

from explorer.pages.explorer.ledger_rows import lift_facts
from retrieval.engine.types import ChunkId, Hit, Lift, ScoreType

SEED, OTHER = (Hit(ChunkId(UUID(int=number), 0), 1.0, ScoreType.SIGNALS) for number in (1, 2))


def told(*lifts):
    hit = Hit(ChunkId(UUID(int=3), 0), 1.0, ScoreType.SIGNALS, lifts=lifts)
    return lift_facts(hit, (OTHER, SEED, hit))


@pytest.mark.parametrize(
    ("lift", "words"),
    [
        (Lift("named", 1.0, "Guy"), "named in the query “Guy” +1.000"),
        (
            Lift("link", 0.25, "Hugh", SEED.chunk_id, "He met Hugh."),
            "linked by name from #2 “Hugh” by: “He met Hugh.” +0.250",
        ),
        (Lift("shared_name", 0.1, "Provence", OTHER.chunk_id), "shares a rare name with #1 “Provence” +0.100"),
        (
            Lift("hyperlink", 0.5, "this page", SEED.chunk_id, "See this page."),
            "linked from #2 “this page” by: “See this page.” +0.500",
        ),
        (
            Lift("triple", 0.5, "Hugh", SEED.chunk_id, "Guy brother of Hugh"),
            "mentioned in #2 “Hugh” by: “Guy brother of Hugh” +0.500",
        ),
        (Lift("next", 0.1, source=OTHER.chunk_id), "next to #1 +0.100"),
        (Lift("section", 0.05, source=SEED.chunk_id), "in the section of #2 +0.050"),
        (
            Lift("link", 0.2, "Hugh", ChunkId(UUID(int=9), 0), "Hugh"),
            "linked by name from a passage not shown “Hugh” +0.200",
        ),
    ],
)
def test_each_kind_says_where_it_comes_from(lift, words):
    assert told(lift) == (words,)


def test_more_than_four_are_summed_up_the_least_of_them():
    lifts = [Lift("link", amount, f"Name {amount}", SEED.chunk_id) for amount in (0.05, 0.4, 0.3, 0.1, 0.02, 0.2)]
    *first, rest = told(*lifts)
    assert [words.rpartition(" ")[2] for words in first] == ["+0.400", "+0.300", "+0.200", "+0.100"]
    # 0.05 and 0.02.
    assert rest == "and 2 more: +0.070"
    assert len(told(*lifts[:4])) == 4


def test_a_hit_without_any_says_so():
    assert told() == ("not linked from any hit and not named in the query",)


def test_a_long_sentence_is_cut_at_a_word():
    (words,) = told(Lift("link", 0.2, "Hugh", SEED.chunk_id, "word " * 100))
    assert len(words) < 300
    assert "word …”" in words
