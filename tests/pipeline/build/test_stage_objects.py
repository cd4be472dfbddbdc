"""Stage objects: the chain of the stages before one, with the Params of each, and Params of another version."""

import pytest

from pipeline.build.recipes import TINY
from pipeline.build.stage_objects import PARAMS, chain, chain_params, stage_of, stage_params
from pipeline.core.errors import StageError
from pipeline.stages.stages import STAGES
from pipeline.store.store import Store


def test_a_chain_is_every_stage_before_with_the_params_that_it_was_made_with(tiny_store: Store) -> None:
    last = tiny_store.ref("tiny", STAGES.names[-1])

    assert [stage_of(stored) for stored in chain(tiny_store, last)] == list(reversed(STAGES.names))
    assert chain_params(tiny_store, last) == {name: TINY.params.of_stage(name) for name in STAGES.names}
    assert list(chain(tiny_store, None)) == []


def test_params_of_another_version_are_refused_by_field(store: Store) -> None:
    folder = store.root / "tmp" / "made"
    folder.mkdir(parents=True)
    (folder / PARAMS).write_text('{"max_of_old": 1}')
    made = store.read(store.commit(folder, STAGES["collect"].kind, {"stage": "collect"}, {}))

    with pytest.raises(StageError, match=r"parameters of collect .*max_of_old.*Build again with this version"):
        stage_params(made)
