"""View models: what each part of the Query Explorer shows, computed from one search outcome by pure functions."""
