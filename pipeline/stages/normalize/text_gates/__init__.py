"""Searches of finished texts, by words of their own, for what must not be in them: secrets, restrictions, wrongly decoded text.

They share nothing but the list of published samples with the rules that they judge, which are in `pipeline.stages.normalize.scrub`,
`license` and `encodings`.
"""
