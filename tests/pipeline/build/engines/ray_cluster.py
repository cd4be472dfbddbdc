"""Ray cluster: two nodes on this machine, one CPU each, as Ray's own test utility starts them. Needs the extra `ray`."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.paths import ROOT


@contextmanager
def ray_cluster(num_nodes: int = 2) -> Iterator[Any]:
    """Start a cluster of nodes and stop it at the end; its workers find this project. Skips the test where Ray is not installed."""
    if not _is_installed():
        pytest.skip("ray is not installed")
    from ray.cluster_utils import Cluster

    before = {name: os.environ.get(name) for name in _ENVIRONMENT}
    os.environ.update(_ENVIRONMENT)
    cluster = Cluster()
    try:
        for _ in range(num_nodes):
            cluster.add_node(num_cpus=1, memory=2 << 30, object_store_memory=80 << 20, include_dashboard=False)
        yield cluster
    finally:
        cluster.shutdown()
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _is_installed() -> bool:
    from importlib.util import find_spec

    return find_spec("ray") is not None


_ENVIRONMENT = {"PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
