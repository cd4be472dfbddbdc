"""Blocks of the stack, one file each: attention with Engram, Mamba-3, experts, M2RNN.

What several blocks share is in `trainer.model`.
"""
