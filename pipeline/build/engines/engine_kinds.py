"""Engine kinds: ENGINES lists what a build can be made with, and what each needs."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pipeline.build.engines.engine import Engine
from pipeline.core.declared import load_declared
from pipeline.core.errors import ParamsError
from pipeline.core.registry import Registry


@dataclass(frozen=True)
class EngineKind:
    """An engine that can be chosen. Which one makes a part is in no identity."""

    name: str
    opens: str
    """The function that opens it, named as `package.module:function`: a library that no build uses is not imported.

    Its arguments are the number of worker processes, the address of a cluster that is there already, or the empty string, and the
    folder of the build, which workers must see too.
    """
    distribution: str = ""
    """The library that it needs besides those of the pipeline; empty: none."""


ENGINES: Registry[EngineKind] = Registry(
    "engine",
    EngineKind("local", "pipeline.build.engines.local_engine:open_local_engine"),
    EngineKind("ray", "pipeline.build.engines.ray_engine:open_ray_engine", "ray"),
)


def open_engine(name: str, num_workers: int, address: str, scratch: Path) -> Engine:
    """Start an engine, or join the cluster at `address`. Raises ParamsError where it cannot be used here, and StageError."""
    kind = ENGINES[name]
    if address and not kind.distribution:
        found = f"it was given the address {address}"
        remedy = "Set the engine too: `--engine ray`, or in the launchpad `engine: ray`."
        raise ParamsError(f"engine {name}", found, "none, as it is this machine", remedy)
    if kind.distribution and find_spec(kind.distribution) is None:
        remedy = f"Install it with `pip install sluice[{name}]`, on every node."
        raise ParamsError(f"engine {name}", f"{kind.distribution} is not installed", "it beside the pipeline", remedy)
    engine: Engine = load_declared(f"engine {name}", "opens", kind.opens)(num_workers, address, scratch)
    return engine
