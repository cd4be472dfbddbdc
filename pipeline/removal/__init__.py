"""Removal for good: the files that name a person, and the received bytes of what is withdrawn.

What no build may contain from now on is declared in `pipeline.build.withdrawal`; objects that nothing keeps go by
`pipeline.store.garbage`.
"""
