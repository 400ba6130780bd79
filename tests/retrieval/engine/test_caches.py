"""Values that are read once a second."""

from retrieval.engine.caches import TtlCache


def kept(values):
    """Return what keeps one value after the other, and the clock by which it does."""
    moments = [0.0]
    return TtlCache(iter(values).__next__, clock=lambda: moments[0]), moments


def test_within_a_second_nothing_is_read_again():
    value, moments = kept("ab")
    assert value.get() == "a"
    moments[0] = 0.99
    assert value.get() == "a"
    moments[0] = 1.0
    assert value.get() == "b"


def test_what_is_forgotten_is_read_at_once():
    value, _ = kept("ab")
    assert value.get() == "a"
    value.forget()
    assert value.get() == "b"


def test_a_reading_that_fails_keeps_nothing():
    def read():
        failures.append(1)
        raise OSError

    failures = []
    value = TtlCache(read)
    for _ in range(2):
        try:
            value.get()
        except OSError:
            continue
    assert len(failures) == 2
