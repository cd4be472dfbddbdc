"""Ranks that are forked from one process: steps of a sharded model, and checkpoints that they save together."""
