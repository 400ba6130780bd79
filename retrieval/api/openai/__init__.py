"""The OpenAI-compatible API: models, chat completions."""
