"""torch.compile: the policy, budgets of graphs and breaks, and the cache of compiled code; layers that are run again, and casts.

Compiling C++ samples is `pipeline.sandbox.compile_check`.
"""
