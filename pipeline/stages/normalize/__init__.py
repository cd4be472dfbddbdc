"""The stage normalize: source files in, clean and licensed documents out, without their duplicates.

Reading archives is `pipeline.stages.collect`; lexers are in `pipeline.lexing`; syntax trees are in `pipeline.stages.enrich`.
"""
