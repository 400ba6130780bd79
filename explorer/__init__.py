"""The human face: pages over the engine."""
