"""Fast operations: torch and triton, nothing of ours. One operation a file: reference, Triton, op, SPEC."""
