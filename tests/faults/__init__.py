"""Campaigns of faults: a kill, an error or damage at every place of a whole build, training or store, and bad input, a row each.

A fault is here if the test plants it again and again: at each call or request in turn, at random moments, in each kind of stored
file, or as each bad archive, source, file or command line. What one file promises under one fault (that a lock is released, a
save is lost alone, a session resumes) is beside the other tests of that file. Longer campaigns are `make campaign`; their
programs are in `tests.tools` and `tests.benchmarks.store`.
"""
