"""Filters of whole texts: sizes, lines, comments, data in the form of code, text in another language, the output of programs.

Whether something is secret, licensed or a copy is judged in `scrub`, `license` and `duplicates` beside this folder.
"""
