"""The stages of `consolidated` alone."""
