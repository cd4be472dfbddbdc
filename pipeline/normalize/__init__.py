"""Source files in, clean and licensed documents out: decode, filter, license, scrub, duplicates.

Knows no syntax tree and no token id.
"""
