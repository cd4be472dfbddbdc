"""Data loading: from a snapshot's mapped rows and a logical position to a batch, infilling and mixture included.

Which snapshot a run reads is `trainer.train.run_data`; how rows were packed is `pipeline.stages.tokenize`.
"""
