"""The shell: the only importer of dagster. Read, call, write, report."""
