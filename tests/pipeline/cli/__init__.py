"""Tests of the commands, each run in this process on a store of the test: answers, exit codes, sentences.

Mistakes on any command line are listed in `tests.faults`; what a command calls is tested in the folder of that subject.
"""
