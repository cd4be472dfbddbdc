"""Positions of steps count the rows of the batches before them, in the sizes that these had."""

from trainer.checkpoint.batch_positions import batch_sizes, position_of_step


def test_the_position_of_a_step_counts_the_batches_as_they_were() -> None:
    sizes = [(3, 4, 8), (5, 8, 2)]

    assert [position_of_step(step, sizes, 2) for step in (0, 2, 3, 4, 5, 9)] == [0, 8, 12, 20, 28, 36]
    assert position_of_step(9, [], 4) == 36


def test_only_resumes_with_other_batches_change_the_sizes() -> None:
    forks = [
        {"step": 3, "fields": {"config.batch_rows": [4, 8]}},
        {"step": 4, "fields": {"environment.torch": ["1", "2"]}},
    ]

    assert batch_sizes(forks) == [(3, 4, 8)]
