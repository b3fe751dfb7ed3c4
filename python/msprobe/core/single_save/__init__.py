"""Key data of reinforcement learning: saving it, and comparing two runs."""
