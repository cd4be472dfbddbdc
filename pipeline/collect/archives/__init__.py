"""Archives as streams of members: tar and zip, judged name by name and never extracted.

Downloads are in `pipeline.collect.network`; folders on this machine are `pipeline.pins.local_tree`.
"""
