"""The search of the console: pages, documents, connections, users, presets and settings, by name."""
