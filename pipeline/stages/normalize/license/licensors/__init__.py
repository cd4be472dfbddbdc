"""Sentences of licensors in words of their own: the classes of their words, and the weights that were learned from examples.

Grammar and lists of known words are in `pipeline.stages.normalize.license.prose`; `tests.tools.licensor_weights` makes the weights.
"""
