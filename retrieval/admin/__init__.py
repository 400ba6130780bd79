"""Administration of preset versions, language models and routing rules."""
