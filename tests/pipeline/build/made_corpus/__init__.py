"""The table of what every file of the made corpus must become, and the test that holds a build to it.

The corpus itself ships as package data in `pipeline.build.made_corpus`.
"""
