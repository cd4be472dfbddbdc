"""The archives of a store are listed with the sources that were read from them, and what cannot be read is no reason to stop."""

import hashlib

from pipeline.removal.store_archives import archives_of, names_of_blobs, read_archives
from tests.pipeline.removal.conftest import Collected


def test_each_archive_is_asked_and_told_with_its_sources(collected: Collected) -> None:
    store = collected.store
    items, broken = hashlib.sha256(b'{"item": "int a;"}').hexdigest(), b"\x1f\x8b cut off"
    store.put_blob([b'{"item": "int a;"}'], items, "evaluation items")
    store.name_blob("evaluation/of-a-test", items)
    (store.root / "rejected").mkdir()
    (store.root / "rejected" / hashlib.sha256(broken).hexdigest()).write_bytes(broken)
    found = {each.sha256: each for each in read_archives(store, lambda pieces: len(list(pieces)))}

    numbers = {pin.revision: number for pin, number in zip(collected.pins, (3, 2), strict=True)}
    assert {name: each.found for name, each in found.items() if each.users} == numbers
    assert [user.identity["name"] for each in found.values() for user in each.users if each.found == 3] == ["made"]
    assert (found[items].is_given, found[items].found, found[items].users) == (True, 3, ())  # itself and its strings
    refused = found[hashlib.sha256(broken).hexdigest()]
    assert (refused.is_refused, refused.found) == (True, None)
    assert names_of_blobs(store) == {"evaluation/of-a-test": items}
    assert archives_of(store, store.read(collected.first["made"])) == [collected.pins[0].revision]
