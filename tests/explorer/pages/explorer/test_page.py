"""All panels together."""

from dataclasses import replace

from explorer.pages.explorer.page import result_panels


def panels(outcome):
    # The charts of every tab can be drawn too.
    for tab in ("scores", "trace"):
        result_panels(outcome, labels={}, tab=tab)
    return result_panels(outcome, labels={}, tab="hits")


def test_the_announcement_counts_the_hits(finished, make_outcome):
    assert panels(finished)["announcement"] == "3 hits in 20 milliseconds."
    assert panels(make_outcome(hits=(), passages=()))["announcement"] == "No results in 20 milliseconds."


def test_a_search_that_the_deadline_ended_before_the_pool_was_read_still_has_its_panels(finished, make_outcome):
    unread = tuple(replace(hit, facts=None, contributions={}, signals={"rrf": 0.016}) for hit in finished.hits)
    cut = panels(make_outcome(hits=unread, passages=(), vector=None, trace=finished.trace[:6]))
    assert cut["hits"] == ()
    assert [cell["span"].stage for cell in cut["funnel"]["cells"]][-1] == "fuse"


def test_a_search_that_the_deadline_ended_before_the_blend_shows_the_fused_order(finished, make_outcome):
    fused = tuple(replace(hit, contributions={}, signals={"rrf": 0.016, "cosine": 0.5}) for hit in finished.hits)
    cut = panels(make_outcome(hits=fused, passages=(), trace=finished.trace[:7]))
    assert [row["bar"] for row in cut["hits"]] == [(), (), ()]
    assert cut["hits"][0]["ledger"].total == ""
