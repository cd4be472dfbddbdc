"""Licenses of files: evidence in tags, headers, texts, REUSE and DEP-5, the resulting expression, and the policy's class for it.

Copies of copyleft files are in `pipeline.stages.normalize.duplicates`; the policy itself is `license_policy.toml` here.
"""
