"""The preset `contextpack`: candidates scored by a rubric, with their neighbours, packed under a token budget."""
