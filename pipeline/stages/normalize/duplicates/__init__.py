"""Duplicates: shingles, MinHash bands, exact Jaccard, keepers, and permissive copies of copyleft files.

Copies of evaluation items are in `pipeline.stages.normalize.contamination`.
"""
