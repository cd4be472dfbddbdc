"""Operations for the GPU, a file or folder each: the reference in plain torch, Triton kernels, the operation and its SPEC.

They import torch, triton and each other; the blocks of the model that call them are in `trainer.model`.
"""
