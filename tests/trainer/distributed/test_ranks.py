"""Ranks: their shares, their start, and what is refused."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.core.errors import ParamsError, TrainingError
from trainer.config.training_config import TrainingConfig, training_recipe
from trainer.distributed.ranks import Ranks


def test_ranks_that_cannot_share_are_refused() -> None:
    with pytest.raises(TrainingError, match="4 ranks: they cannot share 2 logical micro-batches"):
        Ranks(0, 4).share_of(2)


@pytest.mark.parametrize(("batch", "micro"), [(12, 4), (8, 3), (4, 8)])
def test_a_batch_that_is_not_a_tree_is_refused(batch: int, micro: int) -> None:
    values = training_recipe("tiny").model_dump() | {"batch_rows": batch, "micro_batch_rows": micro}

    with pytest.raises((ParamsError, ValueError), match=f"{micro} does not cut {batch} rows"):
        TrainingConfig.model_validate(values)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("WORLD_SIZE", "two", "WORLD_SIZE is 'two'"),
        ("MASTER_PORT", None, "WORLD_SIZE is '2', and MASTER_PORT are not set"),
        ("TORCH_DISTRIBUTED_DEFAULT_TIMEOUT", "1h", "'1h'; expected a whole number of seconds"),
    ],
)
def test_an_environment_that_is_half_of_torchruns_is_refused_before_anybody_waits(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str | None, message: str
) -> None:
    variables = {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "1", name: value}
    for each, text in variables.items():
        monkeypatch.delenv(each, raising=False) if text is None else monkeypatch.setenv(each, text)

    with pytest.raises(TrainingError, match=message), Ranks.joined():
        pass


def test_a_rank_without_a_gpu_of_its_own_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "99")

    with pytest.raises(TrainingError, match="it is number 99 on its machine"):
        Ranks(1, 2).device_of("cuda")
    assert Ranks(1, 2).device_of("cuda:0") == "cuda:0"
    assert Ranks().device_of("cuda") == "cuda"


def test_what_each_rank_makes_is_known_to_all_and_one_alone_raises_its_own_error() -> None:
    def refuse() -> int:
        raise TrainingError("it", "planted", "nothing")

    assert Ranks().all_of(lambda: 3) == [3]
    assert Ranks().first(lambda: 3) == 3
    assert Ranks().beside() == Ranks()
    with pytest.raises(TrainingError, match="it: planted"):
        Ranks().all_of(refuse)


@pytest.mark.slow  # two ranks
def test_an_error_of_one_rank_is_raised_on_all_and_they_talk_on(tmp_path: Path) -> None:
    script = "import sys; from tests.trainer.distributed.test_ranks import as_rank; as_rank(*sys.argv[1:])"
    line = [sys.executable, "-c", script, str(tmp_path / "meeting")]
    started = [subprocess.Popen([*line, str(rank)], stdout=subprocess.PIPE, text=True) for rank in (0, 1)]
    found = [json.loads(each.communicate(timeout=300)[0]) for each in started]

    assert found[0] == found[1] == ["rank 1: it is planted.", ["rank 0", "rank 1"], [0, 1], 0, True]


def as_rank(meeting: str, number: str) -> None:
    """Be one of two ranks, of which the second fails once, and print what it is told."""
    import torch.distributed as dist

    rank = int(number)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    ranks = Ranks(rank, 2)
    beside = ranks.beside()

    def fail() -> None:
        if rank:
            raise TrainingError("rank 1", "it is planted")

    try:
        ranks.all_of(fail)
    except TrainingError as error:
        said = [
            str(error),
            ranks.names(),
            beside.all_of(lambda: rank),
            beside.first(lambda: rank),
            beside.any_of(rank == 1),
        ]
        print(json.dumps(said))


def test_a_meeting_place_without_an_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {"WORLD_SIZE": "2", "RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "9"}
    for name, text in {**variables, "TORCH_DISTRIBUTED_DEFAULT_TIMEOUT": "1"}.items():
        monkeypatch.setenv(name, text)

    with pytest.raises(TrainingError, match=r"rank 1 of 2: not all came to 127\.0\.0\.1:9 within 1 s"), Ranks.joined():
        pass
