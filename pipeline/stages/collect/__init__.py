"""The collect stage: pinned sources in, source files out; every byte verified, none executed or judged.

Pins are defined in `pipeline.pins`; licenses and filters are in `pipeline.stages.normalize`.
"""
