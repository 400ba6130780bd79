"""Language models: how they are asked, who may be asked about what, and what that took."""
