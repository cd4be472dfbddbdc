"""Engines: what makes the parts of a stage, in processes of this machine or on the nodes of a cluster, with the same bytes.

Which parts there are, and what becomes of them, is in `pipeline.build`; a part function is a stage's own, in `pipeline.stages`.
"""
