"""Torchrun: hosts that do not meet, and options that it has not, are sentences."""

import socket

import pytest

from trainer.distributed.torchrun import main


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def started(capfd: pytest.CaptureFixture[str], endpoint: str, *more: str) -> tuple[int, str]:
    times = "join_timeout=1,timeout=1,read_timeout=1"
    options = ["--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "--rdzv-conf", times, "--rdzv-id", "test", *more]
    code = main([*options, "--", "train", "--help"])
    return code, capfd.readouterr().err.splitlines()[-1]


def test_a_host_that_never_comes_is_waited_for_as_long_as_the_options_say(capfd: pytest.CaptureFixture[str]) -> None:
    endpoint = f"127.0.0.1:{free_port()}"
    code, message = started(capfd, endpoint, "--nnodes", "2")

    assert code == 1
    assert message.startswith(f"error TrainingError: meeting place {endpoint}: not all hosts came in time")
    assert "expected 2, as --nnodes says. Start the same command on every host" in message


def test_an_address_without_a_host_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    code, message = started(capfd, "nowhere.invalid:29400", "--nnodes", "2")

    assert code == 1
    assert "meeting place nowhere.invalid:29400: no answer came from there" in message
    assert "expected the address of one of the hosts" in message


def test_options_that_are_none_and_a_command_that_is_missing_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    code, message = started(capfd, "127.0.0.1:1", "--nnodes", "two")

    assert (code, message.partition(":")[0]) == (1, "error TrainingError")
    assert "Correct it: python -m trainer.distributed.torchrun" in message
    assert main(["--nnodes", "2"]) == 2
    assert "no `--` before the command of the ranks" in capfd.readouterr().err
