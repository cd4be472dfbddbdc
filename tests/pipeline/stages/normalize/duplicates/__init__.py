"""Tests of duplicates against comparisons of all pairs, and of copyleft copies under other labels.

The same for a corpus larger than memory is in `tests.pipeline.stages.normalize.duplicates.partitions`.
"""
