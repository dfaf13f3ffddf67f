"""Environments: the edge between Gymnasium's objects and our arrays."""
