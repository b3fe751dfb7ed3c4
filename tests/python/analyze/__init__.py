"""Overflow and NaN across ranks: a corpus collected from real PyTorch, and what the analysis says of it."""
