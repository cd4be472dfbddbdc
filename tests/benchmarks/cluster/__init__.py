"""Slopes of builds as they grow, the plan of a cluster that follows from them, and runs of a team beside its database."""
