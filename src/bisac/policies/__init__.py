"""Trained policies: numpy in, numpy out, one file."""
