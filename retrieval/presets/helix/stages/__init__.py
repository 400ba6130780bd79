"""The stages of `helix` alone."""
