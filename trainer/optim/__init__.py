"""Optimizers: algorithms, parameter groups, gradient clipping and the learning-rate schedule.

The step that calls them is `trainer.train.step`."""
