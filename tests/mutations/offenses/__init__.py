"""Offenses: what must turn each gate red, planted in the code or the tables of a build; see `tests.mutations.of_gates`."""
