"""Framework of the kernels: backends, registration, operands, launch configurations and specifications.

Operations are beside this folder; measurements of them are in `kernels.measure`.
"""
