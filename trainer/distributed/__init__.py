"""Ranks and shards: sums whose order no number of ranks changes, and tensors spread over ranks.

Which parameters are spread is `trainer.model.parallelize`.
"""
