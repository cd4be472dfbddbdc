"""Tests of the project as a whole, and a folder for the tests of each package, at the path of what they test.

Made inputs and oracles are in `tests.support`, programs in `tests.tools`, figures in `tests.benchmarks`, planted faults in
`tests.mutations`.
"""
