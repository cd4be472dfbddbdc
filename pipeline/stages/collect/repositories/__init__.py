"""Git repositories: the isolated command, objects of a pack verified by their ids, and the history of files.

The source kind `git`, which fetches and reads commits with these, is in `pipeline.stages.collect.kinds`.
"""
