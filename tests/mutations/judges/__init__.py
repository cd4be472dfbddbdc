"""Mutations of what judges: measures that read the first of something alone, and audits with a check left out."""
