"""The stages that several presets share, one file each."""
