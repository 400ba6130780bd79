"""Presets and their versions."""
