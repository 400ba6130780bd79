"""Strangers' files are read and prepared in a process of their own, with limits on its time, memory and rights."""
