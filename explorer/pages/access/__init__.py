"""Compartments, clearances, users, groups, keys and the audit log."""
