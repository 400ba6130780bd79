"""The overview and the health page."""
