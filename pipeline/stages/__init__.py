"""The stages of a build, one folder each in the order of STAGES: collect, normalize, enrich, tokenize, verify.

Each holds the work of its stage alone. The engine that runs them is `pipeline.build`; their gates are in `pipeline.contracts`.
"""
