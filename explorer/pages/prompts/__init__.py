"""The page of starting prompts."""
