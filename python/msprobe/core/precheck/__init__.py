"""What the pre-check of operators has that is the same with every framework."""
