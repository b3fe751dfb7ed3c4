"""The pre-check of operators under the names scripts know; the work is in ``msprobe.mindspore.precheck``."""
