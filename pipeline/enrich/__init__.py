"""Documents in, the same documents with structure beside them out. Never changes a byte of text."""
