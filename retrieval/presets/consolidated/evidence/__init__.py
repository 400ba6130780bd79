"""Evidence for the sections of a report: policies, and formulas for thin or one-sided pools. Pure."""
