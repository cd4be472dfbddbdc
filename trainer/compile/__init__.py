"""torch.compile: the policy, budgets of graphs and breaks, and the cache of compiled code.

Compiling C++ samples is `pipeline.sandbox.compile_check`.
"""
