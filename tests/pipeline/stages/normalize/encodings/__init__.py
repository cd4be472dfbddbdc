"""Tests of decoding, on comments of many languages in their encodings, sound and damaged by rule.

The gate that searches for wrongly decoded text is in `tests.pipeline.stages.normalize.text_gates`.
"""
