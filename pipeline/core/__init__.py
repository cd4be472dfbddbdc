"""Foundations of every room: errors, Params, records, schemas, globs, durable writes and the command line's frame.

Nothing here knows a stage, the store or a library that is heavy; what does stands in the room of its subject.
"""
