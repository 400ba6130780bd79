"""Language models: clients, routing rules and usage."""
