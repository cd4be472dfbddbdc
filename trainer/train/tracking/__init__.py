"""Trackers: what records the metrics of a training for other programs, by their own libraries.

What is measured and written anyway is in `trainer.train.metrics`.
"""
