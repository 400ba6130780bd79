"""The stages of `contextpack` alone."""
