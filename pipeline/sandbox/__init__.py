"""Sandboxes: commands of fetched sources run without network, home or privileges, and compilers asked for syntax alone.

What is run in them and why belongs to `pipeline.enrich.compiler` and `trainer.inference`.
"""
