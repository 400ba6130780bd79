"""Which parts of passages to quote as the answer to a question: candidates, their signals, a learned order."""
