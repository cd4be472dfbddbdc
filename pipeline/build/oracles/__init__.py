"""Oracles of what a build stored: what each column, drop, decision and field of a snapshot should be, judged again.

They share no code with the stages. Who asks them is `pipeline.build.audit` for rows, and `pipeline.build.promotion` for snapshots.
"""
