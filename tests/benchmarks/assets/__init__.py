"""Figures of the shell: what the UI costs after many nights."""
