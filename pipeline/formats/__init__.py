"""File formats without a subject of their own: Arrow tables on disk and the dataset of Megatron-LM.

Which tables there are say the stages; which format a snapshot is exported in says `pipeline.export.export`.
"""
