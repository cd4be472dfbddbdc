"""The commands of `python -m trainer`: their arguments, and what they print.

What a command does is in the room of its subject.
"""
