"""Operation of an installation: health, metrics, checks and usage."""
