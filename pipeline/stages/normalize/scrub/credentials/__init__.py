"""Credentials without a shape of their own: passwords by the names beside them, in running text, and random literals.

Tokens whose shape a vendor publishes are in `vendor_tokens.py` above, addresses in `pipeline.stages.normalize.scrub.addresses`.
"""
