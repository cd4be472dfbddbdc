"""Inference: sampling, held-out scores, syntax checks of samples, and the export for transformers.

Held-out loss during training is `trainer.train.evaluation`.
"""
