"""The memory of agents for a user: documents of a push connection that only this user can access."""
