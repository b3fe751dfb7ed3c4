"""Collection in reinforcement learning."""
