"""Git commits as sources: `git` run without hooks or settings, packs verified object by object, histories of files.

Archives are in `pipeline.collect.archives`; the dispatch by kind of pin is in `pipeline.collect`.
"""
