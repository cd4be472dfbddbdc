"""The hybrid model: the stack that a pattern string names, initialization, attention backends and the loss.

The blocks are in `trainer.model.blocks`; fast operations are in `kernels`.
"""
