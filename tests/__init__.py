"""Tests of the project, in the folders of what they test; support, faults, benchmarks and tools beside them."""
