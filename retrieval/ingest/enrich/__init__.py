"""What a language model adds to chunks after a sync: optional, within a budget, and never part of the text."""
