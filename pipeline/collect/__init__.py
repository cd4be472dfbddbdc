"""The stage collect: pinned sources in, source files out. It verifies every byte, and executes, extracts and judges none.

Pins themselves are in `pipeline.pins`; licenses and filters are in `pipeline.normalize`.
"""
