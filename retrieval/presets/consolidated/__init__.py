"""The preset `consolidated`: evidence for the sections of a report."""
