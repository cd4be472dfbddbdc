"""Credentials without a shape of their own: passwords by the names beside them, in running text, and random literals.

A file here is a detector. The names, values and places that they read are in `pipeline.stages.normalize.scrub.credential_signs`,
tokens whose shape a vendor publishes in `vendor_tokens.py` above, addresses in `pipeline.stages.normalize.scrub.addresses`.
"""
