"""Enriched documents in, token rows out: encode, align, pack. Decides nothing about which document is good."""
