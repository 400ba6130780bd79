"""OAuth 2.1 for agents at /mcp: registration, consent and tokens, on django-oauth-toolkit."""
