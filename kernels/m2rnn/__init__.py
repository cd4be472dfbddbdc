"""The M2RNN scan: operation and reference, plain torch and Triton kernels.

The block that uses it is `trainer.model.blocks.m2rnn`.
"""
