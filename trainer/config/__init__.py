"""Configurations: models, presets and training recipes, as closed Params without torch.

The code that a field configures is elsewhere: models in `trainer.model`, batches in `trainer.data`, steps in `trainer.train`.
"""
