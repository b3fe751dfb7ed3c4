"""Trainings with one deliberate fault each, really collected, and what a comparison has to say about them."""
