"""Checkpoints: content-addressed state, certificates, archives, retention and the rules of a resume.

When a checkpoint is saved decides `trainer.train`.
"""
