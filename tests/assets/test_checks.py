"""Every gate is an asset check of its stage, blocking where the gate is."""

from assets.definitions import defs
from assets.resources import declared_corpora
from pipeline.contracts.gates import GATES


def test_every_gate_is_a_check_of_the_asset_of_its_stage() -> None:
    graph = defs.resolve_asset_graph()
    found = {(key.asset_key.to_user_string(), key.name) for key in graph.asset_check_keys}

    assert found == {(f"{each.name}/{gate.stage}", gate.name) for each in declared_corpora() for gate in GATES}


def test_a_blocking_gate_is_a_blocking_check() -> None:
    graph = defs.resolve_asset_graph()
    blocking = {key.name for key in graph.asset_check_keys if graph.get_check_spec(key).blocking}

    assert blocking == {gate.name for gate in GATES if gate.blocking}
