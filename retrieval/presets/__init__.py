"""The presets: each a folder with its numbers, its pipeline, and the stages and formulas that are its own."""
