from resource import RUSAGE_THREAD, getrusage
from time import monotonic, sleep

from corecube.backup.parts import paced

ITEM_SECONDS = 0.02  #: More than is worked between two rests.


def test_resting_leaves_the_time_that_is_not_the_share():
    begun = monotonic()
    taken = [sleep(ITEM_SECONDS) or it for it in paced(range(5), share=0.25)]
    assert taken == list(range(5))
    assert monotonic() - begun >= 5 * ITEM_SECONDS / 0.25


def test_what_an_item_comes_from_takes_part_of_the_share():
    begun = monotonic()
    assert list(paced((sleep(ITEM_SECONDS) or it for it in range(5)), share=0.5)) == list(range(5))
    assert monotonic() - begun >= 5 * ITEM_SECONDS / 0.5


def test_short_work_is_put_together_before_a_rest():
    before = _rests()
    assert list(paced(range(10_000), share=0.5)) == list(range(10_000))
    assert _rests() - before < 1_000


def _rests():
    """Return how often the thread has given up the processor by itself, as it does to sleep."""
    return getrusage(RUSAGE_THREAD).ru_nvcsw
