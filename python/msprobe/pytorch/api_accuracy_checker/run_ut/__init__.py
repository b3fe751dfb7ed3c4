"""``run_ut``, ``multi_run_ut`` and ``run_overflow_check``."""
