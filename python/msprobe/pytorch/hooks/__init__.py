"""Where PyTorch is watched: functions, modules, gradients, collectives, optimizers.

Each module here installs hooks and passes what they see to the Rust collector in one call.
"""
