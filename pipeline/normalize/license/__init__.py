"""Licenses of files: evidence in tags, headers, texts, REUSE and DEP-5, the expression it gives, and the policy's verdict.

Copies of copyleft files are in `pipeline.normalize.duplicates`; the policy itself is `license_policy.toml` here.
"""
