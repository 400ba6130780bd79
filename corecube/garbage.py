"""Python's garbage collector, set for a process that has loaded what it needs and now serves."""

import gc
from typing import Final

#: Objects made before the youngest are looked through; Python's own 700 come together many times in one search.
_YOUNG_OBJECTS: Final = 20_000


def settle() -> None:
    """Never search again for garbage in what is loaded now, and seldom in the rest.

    A full collection over all code holds a request up for 0.1 s. Most objects go by their reference counts anyway.
    """
    gc.collect()
    spare()


def spare() -> None:
    """Do what `settle` does without a last search: what is garbage by now stays, for a process that ends soon."""
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS)
