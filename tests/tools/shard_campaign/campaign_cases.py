"""Cases of the campaign against a large source: each returns what it measured, and everything that was not as it should be."""

import io
import json
import random
import subprocess
import tarfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.tools.shard_campaign.campaign_source import write_lines, write_recipe, write_source
from tests.tools.shard_campaign.faulty_build import AT_ONCE
from tests.tools.shard_campaign.faulty_runs import SOURCE, Ended, FaultyRuns, is_sentence

NUM_POINTS = 20
MAX_RUNS = 30
GIBIBYTE, PAGE = 2**30, 4096
BY_GROUPS = {AT_ONCE: "64"}
"""Fewer documents than the source has, and more than those of the canaries, which are of one part."""
TOP = "top"
"""Folder of all members of an archive, which is no part of their paths."""
SHARDED = ("collect_shard", "clean_source", "enrich_source", "tokenize_source", "prove_source", "mark_documents")
"""Part functions of which each shard has a part."""


@dataclass
class Found:
    """Findings of a case: what it measured, in words, and what was wrong."""

    measured: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def check(self, holds: object, text: str) -> None:
        """Note what is wrong unless it holds."""
        if not holds:
            self.wrong.append(text)


@dataclass
class Campaign:
    """A source of `num_bytes` in shards of about `shard_bytes`, built below `folder` as often as the cases ask."""

    folder: Path
    num_bytes: int
    shard_bytes: int
    until: str = "verify"
    num_workers: int = 2
    """Workers of the build that nothing disturbs."""

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = write_source(self.folder / "made.jsonl", self.num_bytes)
        self.recipe = self._recipe("made", "jsonl", lines)
        self.straight = self.runs("straight", num_workers=self.num_workers)
        self.ended = self.straight.run()
        if self.ended.code:
            raise AssertionError(self.ended.said)

    def runs(self, name: str, recipe: Path | None = None, num_workers: int = 2, **more: object) -> FaultyRuns:
        """Return builds in a store of their own."""
        given: dict[str, object] = {"until": self.until, "num_workers": num_workers, **more}
        return FaultyRuns(recipe or self.recipe, self.folder / name, **given)  # type: ignore[arg-type]

    def same(self, found: Found, runs: FaultyRuns, ended: Ended) -> None:
        """Check that builds ended as the one that nothing disturbed, with a sound store."""
        found.check(ended.code == 0, f"it ended with {ended.code}: {ended.said[-400:]}")
        if ended.code == 0:
            found.check(ended.snapshot_id == self.ended.snapshot_id, f"another snapshot: {ended.snapshot_id}")
            found.check(runs.shard_ids() == self.straight.shard_ids(), "other shards")
            found.check(not runs.damage, f"damage: {runs.damage[:3]}")

    def _recipe(self, name: str, kind: str, file: Path) -> Path:
        return write_recipe(self.folder / f"{name}.toml", [(SOURCE, kind, file)], self.shard_bytes)


def number_of_workers(campaign: Campaign) -> Found:
    """One worker and five make what two made."""
    found = Found()
    for number in (1, 5):
        runs = campaign.runs(f"workers-{number}", num_workers=number)
        campaign.same(found, runs, runs.run())
    num_shards = len(campaign.straight.shard_ids()["collect"])
    found.check(num_shards > 2, f"{num_shards} shards")
    found.measured.append(f"{num_shards} shards, {len(campaign.ended.began)} parts, 1, 2 and 5 workers")
    return found


def order_of_reading(campaign: Campaign) -> Found:
    """Lines in another order, and members of a tar and a zip archive in two more, are the same shards in every stage."""
    found, folder = Found(), campaign.folder
    texts = _texts(folder / "made.jsonl")
    for seed, kind, write in ((1, "jsonl", write_lines), (2, "archive", _write_tar), (3, "archive", _write_zip)):
        random.Random(seed).shuffle(texts)
        name = f"order-{seed}"
        runs = campaign.runs(name, campaign._recipe(name, kind, write(folder / f"{name}.{kind}", texts)))
        ended = runs.run()
        found.check(ended.code == 0, ended.said[-400:])
        if ended.code == 0:
            ids, straight = runs.shard_ids(), campaign.straight.shard_ids()
            found.check(
                ids == straight, f"{name}: other shards of {[each for each in ids if ids[each] != straight[each]]}"
            )
    found.measured.append("lines, a tar and a zip archive in other orders")
    return found


def worker_killed_in_each_kind_of_part(campaign: Campaign, by_groups: bool = False) -> Found:
    """Each part function is killed the first time, its work done: the part is made again, alone or by the next build."""
    found, variables = Found(), BY_GROUPS if by_groups else {}
    runs = campaign.runs(f"killed-{by_groups}", variables=variables)
    ends = list(_until_done(lambda: runs.run("kill")))
    campaign.same(found, runs, ends[-1])
    faulty = {each.name.removeprefix("faulty-") for each in runs.folder.glob("faulty-*")}
    functions = {function for function, _ in runs.noted("ends")}
    found.check(faulty == functions, f"without a fault: {functions - faulty}")
    for ended in ends:  # a part that is made again, alone, may be the first of its kind, and die a second time
        found.check(
            ended.code in (0, -9) or not is_sentence(ended.said, "worker"), f"{ended.code}: {ended.said[-400:]}"
        )
    found.measured.append(f"{len(faulty)} kinds of parts killed, in {len(ends)} builds")
    return found


def disk_full_in_each_kind_of_part(campaign: Campaign, by_groups: bool = False) -> Found:
    """Files of each kind of part end after a few bytes, the first time: a sentence, and the next build goes on."""
    found, variables = Found(), BY_GROUPS if by_groups else {}
    runs = campaign.runs(f"disk-{by_groups}", variables=variables)
    ends = list(_until_done(lambda: runs.run("disk")))
    for ended in ends[:-1]:
        found.check(ended.code == 1, f"exit code {ended.code}")
        found.check(not (flaw := is_sentence(ended.said)), flaw)
    campaign.same(found, runs, ends[-1])
    num_faulty = len([*runs.folder.glob("faulty-*")])
    found.measured.append(f"{num_faulty} kinds of parts without disk, {len(ends)} builds")
    return found


def killed_at_points(campaign: Campaign) -> Found:
    """All processes are killed at points spread over the parts: what began and was not stored is made again, a shard a worker."""
    found, runs = Found(), campaign.runs("points")
    parts = list(campaign.ended.began)
    most, again = 0, Counter[str]()
    for point in range(1, NUM_POINTS + 1):
        aim = len(parts) * point // (NUM_POINTS + 1)
        before = runs.noted()
        ended = runs.run(is_time=lambda aim=aim: len(runs.noted()) >= aim)  # type: ignore[misc]
        repeated = [name for name in ended.began if name in before]
        sharded = [name for name in repeated if name[0] in SHARDED]
        most = max(most, len(sharded))
        again.update(function for function, _ in repeated)
        found.check(len(sharded) <= runs.num_workers, f"after kill {point - 1} made again: {sharded}")
        found.check(not runs.damage, f"damage after kill {point}: {runs.damage[:3]}")
    campaign.same(found, runs, runs.run())
    found.measured.append(f"{NUM_POINTS} kills: at most {most} shards made again; in all {dict(sorted(again.items()))}")
    return found


def disk_that_fills(campaign: Campaign) -> Found:
    """A file system that is full within each stage: a sentence, and once it has grown the build goes on."""
    found, sizes = Found(), _sizes_by_stage(campaign)
    place = campaign.folder / "small-disk"
    with small_disk(place) as resize:
        if resize is None:
            return Found(["not measured: nothing can be mounted here"])
        runs = campaign.runs("disk-fills", store=place / "store")
        for stage, (before, after) in sizes.items():
            size = before + (after - before) // 4
            resize(size)
            ended = runs.run()
            found.check(ended.code == 1, f"{stage}: exit code {ended.code} with {size:,} bytes")
            found.check(not (flaw := is_sentence(ended.said, "space")), f"{stage}: {flaw}")
        resize(4 * max(after for _, after in sizes.values()))
        campaign.same(found, runs, runs.run())
    found.measured.append(f"full in {', '.join(sizes)}")
    return found


def little_memory(campaign: Campaign) -> Found:
    """The kernel gives a build 1 GiB with one worker, 2 GiB with two: it ends as always; with too little, a sentence or a kill."""
    found = Found()
    for number, limit in ((1, GIBIBYTE), (2, 2 * GIBIBYTE), (2, GIBIBYTE), (2, GIBIBYTE * 3 // 10)):
        with memory_group(f"campaign-{number}-{limit}", limit) as join:
            if join is None:
                return Found(["not measured: no group of processes can be made here"])
            runs = campaign.runs(f"memory-{number}-{limit}", num_workers=number)
            ended = runs.run(before=join)
        said = f"{number} workers in {limit / GIBIBYTE:.1f} GiB: {ended.code}"
        found.measured.append(said)
        if limit >= number * GIBIBYTE:
            campaign.same(found, runs, ended)
            continue
        found.check(ended.code in (0, 1, -9), said)
        found.check(
            ended.code != 1 or not (flaw := is_sentence(ended.said)), f"{said}: {flaw if ended.code == 1 else ''}"
        )
        campaign.same(found, runs, runs.run())
    return found


def one_file_larger_than_a_shard(campaign: Campaign) -> Found:
    """A line, a member of a tar and of a zip archive, of four shards is a shard of its own, the same from each."""
    found, folder, ids = Found(), campaign.folder, []
    body = "".join(f"int value_of_row_{row}(int row) {{ return row * {row} + 1; }}\n" for row in range(200_000))
    large = body[: 4 * campaign.shard_bytes].rpartition("\n")[0] + "\n"
    texts = [*_texts(folder / "made.jsonl")[:40], ("m/large.h", large)]
    for name, kind, write in (
        ("line", "jsonl", write_lines),
        ("tar", "archive", _write_tar),
        ("zip", "archive", _write_zip),
    ):
        runs = campaign.runs(
            f"large-{name}", campaign._recipe(f"large-{name}", kind, write(folder / f"large.{name}", texts))
        )
        ended = runs.run()
        found.check(ended.code == 0, f"{name}: {ended.said[-400:]}")
        ids.append(runs.shard_ids() if ended.code == 0 else {})
    found.check(ids[0] and all(each == ids[0] for each in ids), "other shards")
    found.measured.append(
        f"{len(large):,} bytes in {len(ids[0].get('collect', []))} shards of {campaign.shard_bytes:,}"
    )
    return found


def cut_off_in_the_last_shard(campaign: Campaign) -> Found:
    """Lines that end within one lose that line alone, said; an archive that ends early is refused in a sentence."""
    found, folder = Found(), campaign.folder
    lines = (folder / "made.jsonl").read_bytes()
    (folder / "cut.jsonl").write_bytes(lines[:-500])
    runs = campaign.runs("cut-lines", campaign._recipe("cut-lines", "jsonl", folder / "cut.jsonl"))
    ended = runs.run()
    found.check(ended.code == 0, f"lines: {ended.said[-400:]}")
    stages = {each["name"]: each for each in ended.answer.get("stages", [])}
    found.check(stages.get("collect", {}).get("dropped") == {"bad_line": 1}, f"lines: {stages.get('collect')}")
    texts = _texts(folder / "made.jsonl")
    for name, write in (("tar", _write_tar), ("zip", _write_zip)):
        file = write(folder / f"cut.{name}", texts)
        file.write_bytes(file.read_bytes()[: -file.stat().st_size // 50])
        runs = campaign.runs(f"cut-{name}", campaign._recipe(f"cut-{name}", "archive", file))
        ended = runs.run()
        found.check(
            ended.code == 1 and not is_sentence(ended.said, "broken"),
            f"{name}: {ended.code} {ended.said[-300:]}",
        )
        found.check(not runs.damage, f"damage: {runs.damage[:3]}")
    found.measured.append("lines, a tar and a zip archive")
    return found


def _until_done(run: Callable[[], Ended]) -> Iterator[Ended]:
    """Yield how builds ended, up to the first that has done its work."""
    for _ in range(MAX_RUNS):
        ended = run()
        yield ended
        if ended.code == 0:
            return


def _sizes_by_stage(campaign: Campaign) -> Mapping[str, tuple[int, int]]:
    """Return the bytes of a store before and after each stage."""
    sizes, before = {}, 0
    runs = campaign.runs("sizes")
    for stage in ("collect", "normalize", "enrich", "tokenize", "verify"):
        runs.until = stage
        runs.run()
        after = sum(-(-path.stat().st_size // PAGE) * PAGE for path in sorted(runs.path.rglob("*")) if path.is_file())
        sizes[stage] = before, after
        before = after
        if stage == campaign.until:
            break
    return sizes


@contextmanager
def small_disk(place: Path) -> Iterator[Callable[[int], object] | None]:
    """Mount a file system in memory, and yield what gives it another size; None where that is not allowed."""
    place.mkdir(exist_ok=True)

    def mount(options: str) -> int:
        line = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
        return subprocess.run(line, capture_output=True, check=False).returncode

    if mount("size=1m"):
        yield None
        return
    try:
        yield lambda num_bytes: mount(f"remount,size={num_bytes}")
    finally:
        subprocess.run(["umount", str(place)], check=True)


@contextmanager
def memory_group(name: str, num_bytes: int) -> Iterator[Callable[[], object] | None]:
    """Make a group of processes that may hold so many bytes, and yield what puts a process into it; None where there is none."""
    tops = {Path("/sys/fs/cgroup/memory"): "memory.limit_in_bytes", Path("/sys/fs/cgroup"): "memory.max"}
    for top, limit in tops.items():
        group = top / name
        try:
            group.mkdir()
            (group / limit).write_text(str(num_bytes))
        except OSError:
            continue
        try:
            yield partial((group / "cgroup.procs").write_text, "0")
        finally:
            _remove_group(group)
        return
    yield None


def _remove_group(group: Path) -> None:
    """Remove a group once the last of its processes has ended."""
    for _ in range(100):
        with suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.1)


def _texts(lines: Path) -> list[tuple[str, str]]:
    return [(each["path"], each["text"]) for each in map(json.loads, lines.read_text().splitlines())]


def _write_tar(path: Path, texts: list[tuple[str, str]]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for place, text in texts:
            member = tarfile.TarInfo(f"{TOP}/{place}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def _write_zip(path: Path, texts: list[tuple[str, str]]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, text in texts:
            archive.writestr(f"{TOP}/{place}", text)
    return path
