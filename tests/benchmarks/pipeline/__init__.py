"""Figures of the pipeline: stages side by side with public tools, on slices of pinned sources.

Figures of training are in `tests.benchmarks.trainer`; single GPU operations are measured in `kernels.measure`.
"""
