"""Languages, one entry each, and their texts as tokens and comments: lexers, rules of C and C++ files, loops as machine code.

Filters are in `pipeline.stages.normalize`, trees and chunks in `pipeline.stages.enrich`.
"""
