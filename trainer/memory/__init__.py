"""Memory of a training step, before it is taken: what is held when, and whether a device holds it.

The step itself is `trainer.train.step`.
"""
