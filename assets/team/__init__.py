"""The part of the shell that a team shares: the database of Dagster's runs and events.

The services that share it are in `deploy/`; what one machine keeps in files is in `assets/instance.py`.
"""
