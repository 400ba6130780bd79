"""Formulas that put hits in order, choose among them and measure the result. Pure."""
