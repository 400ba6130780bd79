"""Context packs: judging candidates by a rubric, what stands around them, and packing them under a budget."""
