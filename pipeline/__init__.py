"""The pure core: what happens to data, stage by stage. No dagster, no torch, no clock, no environment."""
