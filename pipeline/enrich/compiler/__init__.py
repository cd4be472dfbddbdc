"""Compilation units: compile databases, cmake in a sandbox, and what libclang sees in each unit.

The sandbox itself is `pipeline.sandbox`; parses without a compiler are in `pipeline.enrich.syntax`.
"""
