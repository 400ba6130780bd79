"""What agents remember for a user, and recall: documents of a push connection that this user alone is granted."""
