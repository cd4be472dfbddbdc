"""Pinned sources in, source files out. Verifies every byte; executes, extracts and judges none of it."""
