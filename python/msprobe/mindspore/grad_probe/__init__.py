"""Gradients given to an optimizer of MindSpore."""
