"""The command line of `python -m pipeline`: its commands, and what a person sees on the terminal.

What a command does is in the room of its subject; the frame that all command lines share is `pipeline.core.command_line`.
"""
