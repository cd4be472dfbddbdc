"""The figures that are published: each measured side by side with its peer in one run, and printed as one object."""
