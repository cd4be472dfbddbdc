"""Oracles of drops: what a file must have to be dropped for its text, its license, a secret or an evaluation item.

Drops of collect are in `audited_files` above, copies in `copies/` beside this.
"""
