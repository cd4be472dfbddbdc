"""Mutations: faults that are planted on purpose, each with the gate, canary, error or test that must go red.

A mutation that nothing sees has survived: there a gate, an oracle or a test is missing. How to find what a new gate is worth:
`python -m tests.mutations GATE`. What code does right is tested beside it, in the folder of the same path.
"""
