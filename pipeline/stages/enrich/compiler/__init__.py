"""Compiler index: compile databases, cmake in a sandbox, and what libclang reports of each unit.

The sandbox itself is `pipeline.sandbox`; parses without a compiler are in `pipeline.stages.enrich.syntax`.
"""
