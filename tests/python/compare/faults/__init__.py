"""Trainings with one deliberate fault each, collected for real, and what a comparison has to say about them."""
