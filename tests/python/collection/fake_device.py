"""An accelerator for scripts under test: meta tensors stand for those on it."""

# Figures follow from the number of elements and are known when they are fetched; 13 elements are NaN.
FAKE_DEVICE = """
from msprobe.core.framework import DeviceSketch
from msprobe.pytorch.hooks.adapter import Adapter

queued, fetches = [], []

def measure_on_device(self, tensor):
    queued.append(tensor.numel())
    return len(queued) - 1

def fetch_sketches(self):
    # Of the number of elements, all in the first bucket.
    return [DeviceSketch([n], [n * n, float(n), *[0.0] * 63], n) for n in queued]

def fetch(self):
    fetches.append(len(queued))
    rows = [(float("nan"),) * 4 if n == 13 else (n + 0.5, -n - 0.5, 0.25, float(n)) for n in queued]
    queued.clear()
    return rows

Adapter.measure_on_device, Adapter.fetch = measure_on_device, fetch
Adapter.fetch_sketches = fetch_sketches
"""
