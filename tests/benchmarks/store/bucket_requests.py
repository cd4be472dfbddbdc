"""Requests to a bucket: those of a part, and of a build that finds everything made, in a small store and a larger one."""

import os
import sys
import tempfile
from hashlib import sha256
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

from pipeline.core.child_process import run_child
from pipeline.core.errors import StoreError
from pipeline.storage.bucket_client import BucketClient, parse_address
from tests.benchmarks.figure import Figure
from tests.benchmarks.trainer.bucket_reading import ABSENT, can_be_measured, made_bucket

_TIMEOUT_SECONDS = 1200
_NUM_OTHERS = 300
"""Objects of which there are keys in the larger store, and none in the smaller one."""


def store_requests() -> list[Figure]:
    """Builds of `tiny`, each in a process of its own: the first, one that changes nothing, and that again in a larger store."""
    if not can_be_measured():
        return [Figure("store-requests", None, "requests a part", "reported", None, ABSENT)]
    with (
        tempfile.TemporaryDirectory() as folder,
        made_bucket() as (address, seen),
        patch.dict(os.environ, {"SLUICE_CACHE": folder}),
    ):
        first = _requests_of_build(address, seen)
        again = _requests_of_build(address, seen)
        client = BucketClient(parse_address(address))
        num_parts = len(client.names("keys"))
        for number in range(_NUM_OTHERS):
            client.put(f"objects/{sha256(f'{number}'.encode()).hexdigest()}/manifest.json", b"{}")
        larger = _requests_of_build(address, seen)
    listings = [each for each in larger if is_of_all_objects(each)]
    names = f"requests beside those of leases, {num_parts} parts of `tiny`"
    return [
        Figure("store-requests", round(len(first) / num_parts, 1), "requests a part, first build", "reported", True),
        Figure("store-requests/unchanged", len(again), names, "reported", True),
        Figure(
            "store-requests/larger-store", len(larger) - len(again), "requests more", "0", len(larger) == len(again)
        ),
        Figure("store-requests/listings", len(listings), "listings of all objects", "0", not listings),
    ]


def is_of_all_objects(request: str) -> bool:
    """Return whether a request lists all objects of a store."""
    query = parse_qs(urlsplit(request.partition(" ")[2]).query)
    return "list-type" in query and query.get("prefix", [""])[0].rstrip("/").endswith("/objects")


def _requests_of_build(address: str, seen: list[str]) -> list[str]:
    """Build in a process of its own, and return what it has asked the server, but for signs of life: those grow with time."""
    seen.clear()
    line = [sys.executable, "-m", "pipeline", "build", "--recipe", "tiny", "--store", address, "--json", "--quiet"]
    done = run_child(line, _TIMEOUT_SECONDS, stdout=-1, stderr=-1, text=True)
    if done.exit_code:
        raise StoreError(f"build in {address}", f"exit {done.exit_code}: {done.last_line[:300]}")
    return [each for each in seen if "leases" not in each]
