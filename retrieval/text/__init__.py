"""Analysis of texts: characters, language, quality, fingerprints and parts. Pure, independent of searches."""
