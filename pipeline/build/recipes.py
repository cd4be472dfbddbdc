"""RECIPES: named corpora, each with its pins, its held-out sources and the Params of every stage."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from pipeline.core.errors import PinError
from pipeline.core.params import Params
from pipeline.core.registry import Registry
from pipeline.pins.build_block import BuildBlock
from pipeline.pins.corpora import CORPORA_FILE, load_corpora
from pipeline.pins.decisions import DECISIONS_FILE, Decision, load_decisions
from pipeline.pins.held_out import HeldOut
from pipeline.pins.pins import OPERATIONAL, SourcePin, load_pins, read_tables
from pipeline.stages.collect.params import CollectParams
from pipeline.stages.enrich.params import EnrichParams
from pipeline.stages.normalize.params import DropBands, NormalizeParams
from pipeline.stages.stages import STAGES, reserved_names
from pipeline.stages.tokenize.params import TokenizeParams
from pipeline.stages.verify.params import VerifyParams

ROOT = Path(__file__).parents[2]
MADE_CORPUS = Path(__file__).parent / "made_corpus" / "pins.toml"


class CorpusParams(Params):
    """Everything that decides a corpus, besides its pins. The defaults are the recipe `quick`, with wider bands.

    A stage of STAGES without a field here is a field too: its Params are read with `of_stage`, and are its defaults unless given.
    """

    model_config = ConfigDict(extra="allow")

    held_out: HeldOut = HeldOut(sources=("iminuit",))
    """Rule of what is held out from training."""
    collect: CollectParams = Field(default_factory=CollectParams)
    normalize: NormalizeParams = Field(default_factory=NormalizeParams)
    enrich: EnrichParams = Field(default_factory=EnrichParams)
    tokenize: TokenizeParams = Field(default_factory=TokenizeParams)
    verify: VerifyParams = Field(default_factory=VerifyParams)

    def of_stage(self, name: str) -> Params:
        """Return the Params of a stage."""
        found: Params | None = getattr(self, name, None)
        return STAGES[name].params_class()() if found is None else found

    @model_validator(mode="before")
    @classmethod
    def _validate_further_stages(cls, values: dict[str, Any]) -> dict[str, Any]:
        further = {name: STAGES[name].params_class() for name in values if name not in cls.model_fields}
        return values | {name: kind.model_validate(values[name]) for name, kind in further.items()}

    @model_serializer(mode="wrap")
    def _dump_all_stages(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        further = [name for name in STAGES.names if name not in type(self).model_fields]
        dumped: dict[str, Any] = dump(self)
        return dumped | {name: self.of_stage(name).model_dump(mode="json") for name in further}


class Recipe(Params):
    """A named corpus. `sources` is its slice of the pins file; empty means every pin in it."""

    name: str
    pins: Path
    sources: tuple[str, ...]
    params: CorpusParams
    builds: Mapping[str, BuildBlock] = {}
    """Build blocks of sources that a compiler reads too, by name. A block of the pin itself has precedence."""


# Measured bands of the operational slice: twice the share that each rule drops there, at least one file in a hundred. A rule
# without an entry here has the wide default of DropBands; give a new rule a measured band once the slice was built with it.
_OPERATIONAL_BANDS = DropBands(
    binary=0.01,
    undecodable=0.01,
    too_small=0.03,
    too_large=0.02,
    long_line=0.02,
    long_mean_line=0.01,
    few_alphanumerics=0.01,
    repeated_lines=0.02,
    mostly_comments=0.03,
    generated=0.03,
    amalgamation=0.01,
    encoded_data=0.01,
    objective_c=0.01,
    foreign_language=0.01,
    numeric_data=0.01,
    string_data=0.01,
    tabular=0.01,
    license_refused=0.25,
    license_unknown=0.02,
    license_quarantined=0.4,
    unscrubbable=0.0,
    contaminated=0.01,
    exact_duplicate=0.1,
    near_duplicate=0.15,
    copyleft_copy=0.05,
    contained=0.1,
    container=0.05,
)

QUICK = Recipe(
    name="quick",
    pins=OPERATIONAL,
    sources=("awkward-cpp", "ducc0", "iminuit", "python-rapidjson"),
    params=CorpusParams(normalize=NormalizeParams(drop_bands=_OPERATIONAL_BANDS)),
)
FULL = Recipe(
    name="full",
    pins=OPERATIONAL,
    sources=(),
    params=CorpusParams(
        held_out=HeldOut(sources=("highspy", "iminuit", "onnx")),
        normalize=NormalizeParams(drop_bands=_OPERATIONAL_BANDS),
        tokenize=TokenizeParams(row_length=2048),
    ),
)
FULL_BUILT = FULL.model_copy(
    update={
        "name": "full-built",
        "builds": {
            "lightgbm": BuildBlock(
                cmake=True, options=("-D__BUILD_FOR_PYTHON=ON", "-DUSE_OPENMP=OFF"), min_build_aware_fraction=0.1
            ),
            "z3-solver": BuildBlock(
                cmake=True,
                folder="core",
                options=("-DZ3_ENABLE_EXAMPLE_TARGETS=OFF",),
                max_units=200,
                min_build_aware_fraction=0.1,
            ),
        },
    }
)
"""The full slice with two sources that a compiler reads too: this takes minutes longer and needs the extra `compiler`."""
TINY = Recipe(
    name="tiny",
    pins=MADE_CORPUS,
    sources=(),
    params=CorpusParams(
        held_out=HeldOut(sources=("heron",)),
        tokenize=TokenizeParams(vocabulary="tiny-1024", row_length=128),
        verify=VerifyParams(min_bytes_per_token=1.5),
    ),
)
RECIPES = Registry("recipe", TINY, QUICK, FULL, FULL_BUILT)


def params_of(recipe: Recipe, pins_file: Path | None = None, items_folder: Path | None = None) -> CorpusParams:
    """Return the recipe's Params. For a pins file given in place of its slice, the default drop bands replace the measured
    ones, and of its held-out sources those remain that the file pins.

    `items_folder` holds evaluation items beside those that are shipped; its path is not part of any identity.
    """
    params = recipe.params
    if pins_file is not None:
        normalize = params.normalize.model_copy(update={"drop_bands": DropBands()})
        names = [str(entry.get("name")) for _, entry in read_tables(pins_file, "pin")]
        params = params.model_copy(update={"normalize": normalize, "held_out": params.held_out.among(names)})
    return params if items_folder is None else with_items(params, items_folder)


def corpora_file(variables: Mapping[str, str]) -> Path:
    """Return the path of the declared corpora: SLUICE_CORPORA, else `corpora.toml` at the root of the project."""
    return Path(variables.get("SLUICE_CORPORA", ROOT / CORPORA_FILE))


def expected_params(corpus: str, declared: Path) -> CorpusParams | None:
    """Return the Params of a corpus's recipe: that which is declared, else the one of its name. None without one."""
    corpora = load_corpora(declared, RECIPES.names) if declared.exists() else ()
    for each in corpora:
        if each.name == corpus:
            return params_of(RECIPES[each.recipe], each.pins)
    return params_of(RECIPES[corpus]) if corpus in RECIPES else None


def with_items(params: CorpusParams, items_folder: Path) -> CorpusParams:
    """Return Params with the evaluation items of a folder beside those that are shipped."""
    rules = params.normalize.decontamination.model_copy(update={"items_folder": str(items_folder.absolute())})
    return params.model_copy(update={"normalize": params.normalize.model_copy(update={"decontamination": rules})})


def pins_of(recipe: Recipe, pins_file: Path | None = None) -> tuple[SourcePin, ...]:
    """Load the pins that a build collects: the recipe's slice, or every pin of a file given in its place."""
    from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS  # other commands do not wait for their modules

    path = pins_file or recipe.pins
    pins = load_pins(path, SOURCE_KINDS)
    for pin in pins:
        refuse_reserved(pin.name, f"{path}: {pin.name}")
    if pins_file is not None:
        return pins
    pins = tuple(_with_build(pin, recipe.builds.get(pin.name)) for pin in pins)
    if not recipe.sources:
        return pins
    missing = sorted(set(recipe.sources) - {pin.name for pin in pins})
    if missing:
        found = f"{recipe.pins.name} has no pin {', '.join(missing)}"
        raise PinError(f"recipe {recipe.name}", found, "all of the slice")
    return tuple(pin for pin in pins if pin.name in recipe.sources)


def decisions_of(
    recipe: Recipe, pins_file: Path | None = None, decisions_file: Path | None = None
) -> tuple[Decision, ...]:
    """Load the decisions about the sources that `pins_of` loads: those beside the pins file, if any, or those of a file given.

    Raises DecisionError for a decision that cannot be used.
    """
    pins = pins_file or recipe.pins
    path = decisions_file or pins.with_name(DECISIONS_FILE)
    if decisions_file is None and not path.exists():
        return ()
    decisions = load_decisions(path, (str(entry.get("name")) for _, entry in read_tables(pins, "pin")))
    if decisions:
        from pipeline.stages.normalize.decidable import refuse_undecidable  # a build without decisions does not wait

        refuse_undecidable(decisions, str(path))
    return tuple(each for each in decisions if pins_file or not recipe.sources or each.source in recipe.sources)


def refuse_reserved(name: str, subject: str) -> None:
    """Raise PinError about `subject` if a source has the name of a part that belongs to no source."""
    reserved = reserved_names()
    if name in reserved:
        found, expected = f"name is {name!r}", f"any name but {', '.join(sorted(reserved))}"
        raise PinError(subject, found, expected, "Stages use those names for parts of their own: rename the entry.")


def _with_build(pin: SourcePin, block: BuildBlock | None) -> SourcePin:
    return pin if block is None or pin.build is not None else pin.model_copy(update={"build": block})
