"""The pre-check of MindSpore's operators: PyTorch on the CPU, in the same dtype, is their bench."""
