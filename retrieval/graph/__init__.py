"""The graph of names and links between documents. Pure, without a model."""
