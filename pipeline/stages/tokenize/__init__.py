"""Stage tokenize: enriched documents in, token rows out. It encodes, aligns and packs.

Which documents are good is decided in `pipeline.stages.normalize`; infilling happens at load time, in `trainer.data`.
"""
