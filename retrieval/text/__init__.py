"""What a text is: its characters, language, quality, fingerprints and parts. Pure, and knows nothing of searches."""
