"""Tests of license decisions: evidence, expressions, the policy, and traps that would let copyleft in.

Prose has the folder `prose/` here, sentences in words of their own `licensors/`; copies of copyleft are in
`tests.pipeline.stages.normalize.duplicates`.
"""
