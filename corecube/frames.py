"""Room for deep calls, so that they do not give memory back and ask for it again all the time."""

from collections.abc import Callable
from types import FunctionType
from typing import Final, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

#: Slots of eight bytes: somewhat more than half of 1 MiB.
_SLOTS: Final = 66_000


def with_room(call: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Return what `call` returns; whatever it calls finds room for its frames.

    CPython 3.11 to 3.14 keeps a thread's frames in chunks of 16 KiB, maps a chunk when a call crosses into it and
    unmaps it when that call returns. A loop at such a border, as nested templates have it, maps memory a thousand
    times a page: 10 of 100 ms. A frame that needs more than half of 1 MiB gets a chunk of 1 MiB, and the rest of it
    holds every frame below. Memory that is not touched is not taken.
    """
    result: _T = _roomy(call, *args, **kwargs)
    return result


def _call(call: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    return call(*args, **kwargs)


_roomy: Final = FunctionType(_call.__code__.replace(co_stacksize=_SLOTS), {})
