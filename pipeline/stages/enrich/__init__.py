"""The stage enrich: documents in, the same documents with their structure out. It changes no byte of a text.

Cleaning is `pipeline.stages.normalize`; structure is laid over tokens in `pipeline.stages.tokenize`.
"""
