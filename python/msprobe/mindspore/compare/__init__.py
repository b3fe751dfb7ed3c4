"""Comparison of MindSpore dumps, also with PyTorch ones."""
