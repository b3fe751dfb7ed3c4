"""Static graphs: MindSpore's own dumper does the work, and is told what to do. Nothing here ran on an NPU."""
