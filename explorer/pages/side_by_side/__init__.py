"""One question to several presets."""
