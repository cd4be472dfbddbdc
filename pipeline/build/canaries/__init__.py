"""Canaries: planted offenses that every build sends through the code that judges it, and that must be caught.

Files that rules must drop or clean, hostile archives, and for each gate an altered output of a stage that turns it red. Gates are
declared in `pipeline.contracts`, their measures in the stages.
"""
