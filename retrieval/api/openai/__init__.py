"""The OpenAI-compatible API: models, chat completions, responses, completions, embeddings, reranking."""
