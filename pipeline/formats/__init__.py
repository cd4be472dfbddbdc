"""File formats: Arrow tables on disk, the dataset of Megatron-LM, and the names of a snapshot's files.

The tables are declared by the stages, the formats of exports in `pipeline.export.export`.
"""
