"""docs/loader.md is true: its worked example, recomputed from the page's rules without the loader."""

import hashlib
import json
import re
from math import ceil, isqrt

from tests.support.made.made_rows import LAYOUT, sources_of
from tests.support.paths import ROOT
from trainer.data.loader import Loader, LoaderConfig

PAGE = ROOT / "docs" / "loader.md"
MASK = 2**64 - 1
SIZES = {"heron": 23, "lantern": 9, "quarry": 40}
SEED, BATCH, BATCH_ROWS = 5, 123_456, 4


def mix(word: int) -> int:
    word = (word + 0x9E3779B97F4A7C15) & MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def place_in_cycle(place: int) -> tuple[str, int]:
    """Return the sample that must come earliest among those that may come here; slot by slot from the cycle's start."""
    cycle, names, done = sum(SIZES.values()), list(SIZES), dict.fromkeys(SIZES, 0)
    for slot in range(place + 1):
        ready = [name for name in names if done[name] < SIZES[name] and done[name] * cycle // SIZES[name] <= slot]
        name = min(ready, key=lambda name: (ceil((done[name] + 1) * cycle / SIZES[name]), names.index(name)))
        done[name] += 1
    return name, done[name] - 1


def walk(index: int, size: int, key: int) -> int:
    left_size = isqrt(size - 1) + 1
    right_size = ceil(size / left_size)
    keys = [mix(key ^ mix(number)) for number in range(6)]
    while True:
        left, right = divmod(index, right_size)
        for number in (0, 2, 4):
            left = (left + mix(keys[number] ^ right)) % left_size
            right = (right + mix(keys[number + 1] ^ left)) % right_size
        index = left * right_size + right
        if index < size:
            return index


def by_hand(position: int) -> list[object]:
    cycle, place = divmod(position, sum(SIZES.values()))
    source, number_in_cycle = place_in_cycle(place)
    number = cycle * SIZES[source] + number_in_cycle
    turn, index = divmod(number, SIZES[source])
    word = int.from_bytes(hashlib.blake2b(source.encode(), digest_size=8, person=b"sluice/source").digest(), "little")
    key = mix(mix(mix(SEED) ^ word) ^ (turn + 1))
    return [position, cycle, place, source, number, turn + 1, index, walk(index, SIZES[source], key)]


def test_the_worked_example_of_the_page_is_what_its_rules_give_and_what_the_loader_reads() -> None:
    expected = [by_hand(BATCH * BATCH_ROWS + row) for row in range(BATCH_ROWS)]
    text = PAGE.read_text()
    table = re.findall(
        r"^\| (\d+) \| (\d+) \| (\d+) \| (\w+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", text, re.MULTILINE
    )
    on_page = [[int(cell) if cell.isdigit() else cell for cell in row] for row in table]
    loader = Loader(sources_of(**SIZES), LAYOUT, LoaderConfig(seed=SEED))
    origins = loader.batch_at(BATCH * BATCH_ROWS, BATCH_ROWS).row_origins

    assert on_page == expected
    assert [[origin.source, origin.epoch, origin.row] for origin in origins] == [
        [row[3], row[5], row[7]] for row in expected
    ]


def test_the_state_on_the_page_has_the_fields_of_a_state() -> None:
    loader = Loader(sources_of(**SIZES), LAYOUT, LoaderConfig(seed=SEED))
    (shown,) = re.findall(r"^    (\{.*\})$", PAGE.read_text(), re.MULTILINE)
    state = loader.state_at(BATCH * BATCH_ROWS)

    assert json.loads(shown).keys() == state.keys()
    assert {name: json.loads(shown)[name] for name in ("version", "seed", "position")} == {
        name: state[name] for name in ("version", "seed", "position")
    }
