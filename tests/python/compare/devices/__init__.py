"""Pairs of trainings "across devices": the same computed another way, healthy and with one fault."""
