"""Command line `python -m pipeline`: its commands, one file a group, and the console.

The work of a command is in the folder of its subject; what all command lines share is in `pipeline.core.command_line`.
"""
