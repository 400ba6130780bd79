"""The engine's HTTP APIs: CoreCube's own under /api/v1, the OpenAI-compatible one under /v1."""
