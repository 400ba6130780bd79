"""Evidence for sections, and section sets."""
