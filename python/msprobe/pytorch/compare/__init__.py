"""Comparison of PyTorch dumps. ``msprobe.pytorch.compare`` is this package in import statements with a module
behind it, and the function of the same name for those who ask ``msprobe.pytorch`` for it.
"""
