"""What is kept of searches: traces and passages, read again by whoever may see them now."""
