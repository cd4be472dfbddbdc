"""Offenses: what must turn each gate red, planted in the code or the tables of a build.

The rule that makes mutations of them is `tests.mutations.of_gates`; offenses that every build sends are in
`pipeline.build.canaries`.
"""
