"""The figures that are published: each measured side by side with its peer in one run, and printed as one object.

Operations on a GPU are measured in `kernels.measure`, training steps in `trainer.bench`; claims that must hold are tests.
"""
