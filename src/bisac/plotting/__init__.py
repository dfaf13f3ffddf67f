"""Colours, styles and learning curves of every picture."""
