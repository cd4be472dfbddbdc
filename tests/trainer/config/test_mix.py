"""Arguments of `--mix` are weights of snapshots, or shares of rows."""

from trainer.config.mix import divide_mix


def test_weights_of_snapshots_are_no_shares() -> None:
    assert divide_mix(["quick=2", "mine/candidate=0.5"]) == (("quick=2", "mine/candidate=0.5"), None)
