"""Foundations of every room: errors, Params, records, schemas, registries, durable writes and the frame of command lines.

No stage, store or heavy library is known here; contracts between stages are in `pipeline.contracts`.
"""
