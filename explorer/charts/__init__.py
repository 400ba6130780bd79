"""Charts: pure functions from the engine's data to Plotly figures, each with the same numbers as a table."""
