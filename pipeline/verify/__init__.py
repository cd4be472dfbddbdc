"""Proofs about a candidate snapshot, from its bytes alone. Changes nothing."""
