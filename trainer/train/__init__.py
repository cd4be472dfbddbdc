"""Training: sessions, steps, evaluation, metrics and determinism.

The model is in `trainer.model`, batches are in `trainer.data`; proofs about a trainer are in `trainer.proof`.
"""
