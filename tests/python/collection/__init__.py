"""The PyTorch front of collection, without the service that collects."""
