"""Contamination: evaluation items, shipped and given, and the documents that hold their solutions.

Duplicates among documents are in `pipeline.stages.normalize.duplicates`.
"""
