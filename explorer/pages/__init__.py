"""The pages of the console, a folder each: addresses, views, panels and forms."""
