"""Ranks and shards: sums whose order no number of ranks changes, tensors spread over ranks, and the start of ranks by torchrun.

Which parameters are spread is `trainer.model.parallelize`.
"""
