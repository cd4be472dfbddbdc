"""The hybrid model: one file a block, and the stack that a pattern string names."""
