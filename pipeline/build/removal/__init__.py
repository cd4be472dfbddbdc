"""Removal: withdrawals, which keep data out of every later build, and the erasure of the bytes that were received.

Who still holds what is removed is found here; what may be removed because nothing needs it is in `pipeline.store`.
"""
