"""Origins of tokens: the file and the bytes that a token is from, and the rows and runs that a file's tokens went to.

Not here: what the stages did with a file, which is `pipeline.lineage.why`.
"""
