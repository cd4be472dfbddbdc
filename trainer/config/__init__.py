"""Configurations: models, presets and training recipes, as closed Params without torch.

The code that a field configures is in the room of its subject.
"""
