"""Where one document went in one search: step by step, with what would have changed it."""
