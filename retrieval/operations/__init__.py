"""Looking after an installation: its health, metrics, checks and usage."""
