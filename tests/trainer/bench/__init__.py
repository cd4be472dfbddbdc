"""Tests of programs that measure a GPU: their rows on a CPU, plans of memory, signals of logs.

Figures that are published are in `tests.benchmarks.trainer`.
"""
