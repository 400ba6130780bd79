"""Frozen dataclasses that a search creates by the hundred."""

from dataclasses import field, fields, make_dataclass
from typing import Any, TypeVar

_T = TypeVar("_T")


def quick(cls: type[_T]) -> type[_T]:
    """Return a frozen dataclass whose instances are made three times as fast; a decorator above `dataclass`.

    Python sets each field of a frozen instance by a call. Here it is frozen for type checkers alone. Not for a class
    with `__post_init__`.
    """
    declared: list[Any] = [
        (it.name, Any, field(default=it.default, default_factory=it.default_factory, kw_only=it.kw_only))
        for it in fields(cls)  # type: ignore[arg-type]  # a dataclass, as the decorator below it made it
    ]
    cls.__init__ = make_dataclass(cls.__name__, declared).__init__  # type: ignore[method-assign,misc]
    del cls.__setattr__, cls.__delattr__
    return cls
