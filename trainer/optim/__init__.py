"""Optimizers: parameter groups, AdamW, Muon and the learning-rate schedule.

The step that calls them is `trainer.train.step`."""
