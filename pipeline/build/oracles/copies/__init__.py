"""Oracles of copies: columns that documents copy, and documents that are called copies of others or of evaluation items.

Which copies a change may be compared with is in `audited_changes` above.
"""
