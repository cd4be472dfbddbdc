"""Archives: tar and zip as streams of members, each checked by name and size, never extracted to disk.

Downloads are in `pipeline.stages.collect.network`; folders on this machine are read in `pipeline.stages.collect.kinds`.
"""
