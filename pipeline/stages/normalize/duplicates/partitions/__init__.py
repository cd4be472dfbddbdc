"""Partitions: duplicates of a corpus that is too large for the memory of one process, found range by range and group by group.

What a copy is, and which one is kept, is in `pipeline.stages.normalize.duplicates`, the same for a corpus of any size.
"""
