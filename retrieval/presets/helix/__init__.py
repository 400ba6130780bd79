"""The preset `helix`: several signals, typed memory and links between documents."""
