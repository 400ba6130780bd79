"""The graph of names: what documents are called, where texts say so, and how that lifts hits. Pure, without a model."""
