"""Gradient probe: what does not depend on a framework."""
