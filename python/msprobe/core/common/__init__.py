"""Logging and exceptions, at the import paths scripts already use."""
