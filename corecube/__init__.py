"""CoreCube: access control, connections and the application's foundation."""

import gc

# Loading the code creates many objects and hardly any garbage: Python's default of 700 new objects before a collection
# makes every process start 13 % later, and is reached often in one search.
gc.set_threshold(20_000)
