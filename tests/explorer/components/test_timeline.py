"""The trace on its time line."""

from explorer.components.funnel import span_rows


def test_a_parent_stands_before_the_legs_that_ran_inside_it(finished):
    rows = span_rows(finished.trace, finished.state.scope)
    assert [row["span"].stage for row in rows][:6] == ["analyze", "embed", "legs", "dense", "fulltext", "fuse"]
    assert [row["span"].stage for row in rows if row["span"].parent] == ["dense", "fulltext"]


def test_stages_follow_each_other_and_legs_start_together(finished):
    rows = {row["span"].stage: row for row in span_rows(finished.trace, finished.state.scope)}
    # Of 20 ms: analyze 1, embed 6, then the legs at 7 for 4, then fuse at 11.
    assert (rows["embed"]["x"], rows["embed"]["width"]) == (5.0, 30.0)
    assert rows["dense"]["x"] == rows["fulltext"]["x"] == rows["legs"]["x"] == 35.0
    assert (rows["dense"]["width"], rows["fulltext"]["width"]) == (15.0, 10.0)
    assert rows["fuse"]["x"] == 55.0


def test_notes_come_with_their_stage(finished):
    rows = {row["span"].stage: row for row in span_rows(finished.trace, finished.state.scope)}
    assert [note.code for note in rows["fulltext"]["span"].notes] == ["fulltext_relaxed"]


def test_a_merge_gets_the_chunks_of_all_legs(finished):
    rows = {row["span"].stage: row["entered"] for row in span_rows(finished.trace, finished.state.scope)}
    assert [rows[it] for it in ("analyze", "legs", "dense", "fuse", "complete")] == [0, 0, 0, 4, 4]
