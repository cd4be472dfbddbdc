"""Experiments of minutes with small models: `make learn` and `make showcase`, which no test runs."""
