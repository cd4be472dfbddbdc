"""Collected sources as they are stored: their files, drops and reports, and the listings of their names, judged before a promotion.

What a build itself has just made is judged by its audits, in `pipeline.build.audit`; snapshots are in `pipeline.build.promotion`.
"""
