"""Labeled sentences of licensors and of programs, and the test that holds the weights to them.

The weights are learned by `tests.tools.licensor_weights`.
"""
