"""Key data of reinforcement-learning runs: saving it, and comparing two runs."""
