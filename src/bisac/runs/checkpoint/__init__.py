"""Checkpoints: the whole of a run on disk."""
