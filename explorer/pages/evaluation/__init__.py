"""Judgments and question sets."""
