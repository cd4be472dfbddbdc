"""Columns beside tokens: list columns as two arrays, and structure laid over tokens by their first byte.

Rows of several documents are in `pipeline.stages.tokenize.rows`.
"""
