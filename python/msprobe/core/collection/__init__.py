"""What collection is with any framework: windows, steps, wrappers in place while a window is open, stacks."""
