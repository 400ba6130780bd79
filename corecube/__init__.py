"""CoreCube: access control, connections and the application's foundation."""

import gc
import os

# Loading the code creates many objects and hardly any garbage: Python's default of 700 new objects before a collection
# makes every process start 13 % later, and is reached often in one search. A collection of the second generation after
# ten of the first, instead of fifty, would take another 8 % of a start.
gc.set_threshold(20_000, 50)

# OpenBLAS reads this when NumPy is imported. A search multiplies small matrices; after each, a second thread would spin
# for 25 ms, which took a third of a search's CPU time, and often the core that the next stage needed.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
