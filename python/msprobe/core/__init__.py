"""What needs no framework."""
