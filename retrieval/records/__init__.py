"""Stored searches: traces and passages, always read with the reader's access of today."""
