"""Benchmarks of training steps, plans of their memory, device checks as rows, and triage of compiler logs.

Benchmarks of single operations are in `kernels.measure`; proofs are in `trainer.proof`.
"""
