"""Oracles of what a snapshot is made of: the order of its rows, the split of its documents, and the fields of its manifest.

What one document, drop or copy should be is judged by the other rooms of `pipeline.build.oracles`.
"""
