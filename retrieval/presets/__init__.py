"""The presets: each a folder with its configuration, pipeline, stages and formulas."""
