"""Ranks on two hosts, each with a torchrun of its own, train as one process does, after one host was killed too."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.digests import code_digest
from pipeline.core.errors import TrainingError
from pipeline.store.store import Store
from tests.pipeline.storage.conftest import Machine, bucket_address, machine, s3_endpoint
from tests.support.made.made_snapshot import CORPUS, commit_made
from tests.trainer.distributed.test_torchrun import free_port
from tests.trainer.train.test_loop import wait_for_step
from trainer.distributed import hosts
from trainer.distributed.ranks import Ranks
from trainer.train.child_session import SAME
from trainer.train.determinism import ENVIRONMENT_VARIABLES

__all__ = ["bucket_address", "machine", "s3_endpoint"]
STEPS, TIMEOUT_SECONDS = 6, 300
ENVIRONMENT = {**os.environ, **ENVIRONMENT_VARIABLES, "OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "1"}


@dataclass
class Cluster:
    """Hosts of this machine that share a store: a folder, or a bucket of which each has a cache of its own below `caches`."""

    store: str
    folder: Path
    caches: Path | None = None

    def command(self, run: str, *more: str) -> list[str]:
        out = str(self.folder / run)
        line = ["train", "--store", self.store, "--corpus", CORPUS, "--run", run, "--out", out, "--json"]
        line += ["--device", "cpu", "--micro-batch-rows", "1", "--stop-after", str(STEPS), "--save-every", "2", *more]
        return line

    def start(
        self, run: str, num_hosts: int, num_ranks: int, *more: str, meeting_host: int | None = None
    ) -> "list[subprocess.Popen[str]]":
        """Start a torchrun for each host, of which the meeting place is the given one, or else as torch chooses."""
        endpoint = f"127.0.0.1:{free_port()}"
        options = ["--nnodes", str(num_hosts), "--nproc-per-node", str(num_ranks), "--rdzv-backend", "c10d"]
        options += ["--rdzv-endpoint", endpoint, "--rdzv-id", run, "--local-addr", "127.0.0.1"]
        line = [sys.executable, "-m", "trainer.distributed.torchrun", *options]
        train = ["--", *self.command(run, "--shard", *more)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        started = []
        for host in range(num_hosts):
            chosen = [] if meeting_host is None else ["--rdzv-conf", f"is_host={int(host == meeting_host)}"]
            environment = self.environment(host)
            started += [subprocess.Popen([*line, *chosen, *train], env=environment, start_new_session=True, **pipes)]  # type: ignore[call-overload]
        return started

    def killed(self, run: str, num_ranks: int, meeting_host: int) -> str:
        """Start ranks on each of two hosts, kill the second host at a step, and return what the first one says."""
        started = self.start(run, 2, num_ranks, meeting_host=meeting_host)
        wait_for_step(self.folder / run / "metrics.jsonl", 3)
        for group in groups_of(started[1].pid):  # torchrun starts each rank as the leader of a session
            os.killpg(group, signal.SIGKILL)
        found = [each.communicate(timeout=TIMEOUT_SECONDS)[1] for each in started]
        assert [each.returncode for each in started] == [1, -signal.SIGKILL]
        return found[0]

    def environment(self, host: int) -> dict[str, str]:
        caches = {"SLUICE_CACHE": str(self.caches / str(host))} if self.caches else {}
        return {**os.environ, **ENVIRONMENT, **caches}

    def train(self, run: str, num_hosts: int, num_ranks: int, *more: str) -> dict[str, Any]:
        started = self.start(run, num_hosts, num_ranks, *more)
        found = [each.communicate(timeout=TIMEOUT_SECONDS) for each in started]
        assert [each.returncode for each in started] == [0] * num_hosts, [errors[-2000:] for _, errors in found]
        return json.loads("".join(out for out, _ in found))  # type: ignore[no-any-return]  # of rank 0 alone

    def alone(self, run: str) -> dict[str, Any]:
        line = [sys.executable, "-m", "trainer", *self.command(run)]
        done = subprocess.run(line, env=self.environment(0), capture_output=True, text=True, check=True)
        return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    root = tmp_path_factory.mktemp("hosts") / "store"
    commit_made(Store(root), num_files=8)
    return Cluster(str(root), root.with_name("out"))


@pytest.fixture(scope="module")
def alone(cluster: Cluster) -> dict[str, Any]:
    """Return what one process says of the same run."""
    return cluster.alone("alone")


@pytest.mark.campaign  # three trainings, of four ranks, two and one; the test below kills a host too
def test_a_run_of_two_hosts_of_which_one_is_killed_goes_on_with_fewer_ranks_as_one_process_would(
    cluster: Cluster, alone: dict[str, Any]
) -> None:
    said = cluster.killed("killed", 2, meeting_host=1)
    left = Store(Path(cluster.store)).ref("runs/killed", "latest")
    resumed = cluster.train("killed", 1, 2, "--resume", "latest")
    again = cluster.train("killed", 2, 1, "--resume", "latest")

    require_ranks_error(said)
    assert left not in (None, alone["checkpoint_id"])
    assert resumed["num_ranks"] == again["num_ranks"] == 2
    assert (resumed["unchanged"], again["unchanged"]) == (False, True)
    for each in (resumed, again):
        assert {name: each[name] for name in SAME} == {name: alone[name] for name in SAME}


@pytest.mark.slow  # a training of two ranks
def test_a_host_that_has_the_meeting_place_says_the_same_where_the_other_one_is_killed(cluster: Cluster) -> None:
    require_ranks_error(cluster.killed("other-killed", 1, meeting_host=0))


def require_ranks_error(said: str) -> None:
    assert "another rank has ended or does not respond" in said
    assert "error TrainingError: ranks: rank " in said.splitlines()[-1], said[-2000:]


@pytest.mark.slow  # two trainings on a server's bucket
def test_hosts_with_a_cache_each_write_and_read_their_shares_of_a_bucket(
    alone: dict[str, Any], machine: Machine, tmp_path: Path
) -> None:
    bucket = machine("writer")
    commit_made(bucket, num_files=8)
    hosts_of_bucket = Cluster(bucket.storage.address, tmp_path / "out", tmp_path / "caches")
    half = hosts_of_bucket.train("run", 2, 2, "--stop-after", "4")
    shutil.rmtree(tmp_path / "caches")
    resumed = hosts_of_bucket.train("run", 2, 1, "--resume", "latest")
    read = [
        {path.name for path in tmp_path.glob(f"caches/{host}/*/objects/training/checkpoint/{half['checkpoint_id']}/*")}
        for host in (0, 1)
    ]

    assert {name: resumed[name] for name in SAME} == {name: alone[name] for name in SAME}
    tensors = [{name for name in names if name.startswith(("parameters-", "optimizer-"))} for names in read]
    assert all(tensors)
    assert not tensors[0] & tensors[1], "each host fetched the files of its own rank"


@pytest.mark.slow  # two ranks
def test_hosts_of_other_code_or_another_store_are_refused_by_name(cluster: Cluster, tmp_path: Path) -> None:
    other = shutil.copytree(cluster.store, tmp_path / "store")
    script = "import sys; from tests.trainer.distributed.test_hosts import as_rank; as_rank(*sys.argv[1:])"
    line = [sys.executable, "-c", script, str(cluster.store), str(other), str(tmp_path / "meeting")]
    ranks = [
        subprocess.Popen([*line, str(rank)], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) for rank in (0, 1)
    ]
    said = [each.communicate(timeout=TIMEOUT_SECONDS)[0].splitlines() for each in ranks]

    for of_code, of_store in said:
        assert "ranks: their code of kernels differ: rank 0: " in of_code
        assert f"store {cluster.store}: rank 1 has {other}, and does not see there what rank 0 has written" in of_store


def as_rank(store: str, other: str, meeting: str, rank: str) -> None:
    """Be one of two ranks, of which the second has first other code and then another store, and print what is refused."""
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=int(rank), world_size=2)
    ranks, own = Ranks(int(rank), 2), Store(Path(other if rank == "1" else store))
    with pytest.MonkeyPatch.context() as patch:
        if rank == "1":
            patch.setattr(hosts, "code_digest", lambda path: "f" * 64)
        with pytest.raises(TrainingError) as of_code:
            hosts.require_same_code(ranks)
    with pytest.raises(TrainingError) as of_store, own.writer("runs/refused", "a test"):
        hosts.own_scratch(own, Path("tmp/runs/refused"), ranks)
    print(of_code.value, of_store.value, sep="\n")


def test_one_rank_needs_no_other_and_writes_where_the_run_does(store: Store) -> None:
    hosts.require_same_code(Ranks())
    with store.writer("runs/r", "a test") as scratch:
        assert hosts.own_scratch(store, scratch.relative_to(store.root), Ranks()) == scratch


def test_the_code_of_a_package_is_that_of_its_modules(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    first = code_digest(tmp_path)
    code_digest.cache_clear()
    (tmp_path / "a.py").write_text("2")

    assert code_digest(tmp_path) != first


def groups_of(launcher: int) -> list[int]:
    """The process groups of a launcher and of the ranks that it has started."""
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    return sorted({os.getpgid(int(each)) for each in (*children, launcher)})
