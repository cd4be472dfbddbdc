"""Signs of credentials: names, values, and places in calls, commands, tables and prose, which detectors of credentials read.

The detectors are in `pipeline.stages.normalize.scrub.credentials`, shapes of tokens in `token_shapes.py` above.
"""
