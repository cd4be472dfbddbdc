"""Framework of the kernels: backends, registration, launches, launch configurations and specifications.

Operations are beside this folder; measurements of them are in `kernels.measure`.
"""
