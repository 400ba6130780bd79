"""Dataclasses that are frozen for type checkers alone."""

import pickle
from dataclasses import dataclass, field, replace

from retrieval.engine.quick import quick


@quick
@dataclass(frozen=True, slots=True)
class Pair:
    one: int
    other: int = 2
    names: dict[str, int] = field(default_factory=dict, compare=False)
    last: str = field(default="", kw_only=True)


def test_it_is_made_compared_copied_and_pickled_as_any_frozen_dataclass():
    pair = Pair(1, last="z")
    assert (pair.one, pair.other, pair.names, pair.last) == (1, 2, {}, "z")
    assert pair.names is not Pair(1).names
    assert pair == Pair(1, 2, {"a": 1}, last="z") != Pair(1)
    assert hash(pair) == hash(Pair(1, 2, {"a": 1}, last="z"))
    assert replace(pair, one=3) == Pair(3, last="z")
    assert pickle.loads(pickle.dumps(pair)) == pair
    assert repr(pair) == "Pair(one=1, other=2, names={}, last='z')"
