"""The pre-check of single operators: each is run on the device and, in a raised precision, on the CPU."""
