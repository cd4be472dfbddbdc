"""Tests of the store on disk: objects, refs, logs, locks, fsck and garbage collection, a file each.

A kill at every call, and damage of every kind of file, are in `tests.faults`.
"""
