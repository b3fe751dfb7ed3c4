"""``PrecisionDebugger`` of MindSpore."""
