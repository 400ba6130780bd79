"""Evidence for the sections of a report: policies, and rules by which thin or one-sided pools do not lose. Pure."""
