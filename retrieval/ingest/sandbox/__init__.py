"""Untrusted files are parsed and prepared in a separate process with limits on its time, memory and rights."""
