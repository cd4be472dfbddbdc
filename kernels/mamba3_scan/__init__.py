"""The Mamba-3 scan: operation and reference, chunked torch, Triton kernels and public peers.

The block that uses it is `trainer.model.blocks.mamba3`.
"""
