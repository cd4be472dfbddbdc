"""Decoding of files to texts, and the encodings that are neither ASCII nor sound UTF-8, judged by what languages write.

The gate that searches kept texts for what was wrongly decoded shares nothing with it:
`pipeline.stages.normalize.text_gates.gibberish`.
"""
