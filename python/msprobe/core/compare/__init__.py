"""Comparison of two dumps of any framework: arguments are checked here, Rust compares. Imports none."""
