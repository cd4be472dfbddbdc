"""The commands of `python -m trainer`: their arguments, and what they print. One file a group of commands.

The work itself is in the room of its subject, which a command imports when it runs: `--help` loads no torch.
"""
