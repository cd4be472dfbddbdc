"""Labeled lines: secrets that must go, by kind, and look-alikes that must stay, put together when the tests run."""
