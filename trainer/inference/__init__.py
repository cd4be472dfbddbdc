"""Inference: sampling, held-out scores, and the export for transformers.

Held-out loss during training is `trainer.train.evaluation`; the compile check is `pipeline.sandbox.compile_check`.
"""
