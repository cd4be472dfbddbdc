"""Prose of comments: where it is, its words, the names and notices of licenses in it, and the sentences that speak of rights.

Decisions, whole license texts and annotations are in `pipeline.stages.normalize.license`.
"""
