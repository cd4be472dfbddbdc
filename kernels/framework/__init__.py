"""What every kernel shares: backends, launches, launch configurations and the declaration that finds it.

Operations are beside this folder; measurements of them are in `kernels.measure`.
"""
