"""The stages that several presets share, one small file each. A preset is a tuple of stages."""
