"""RECIPES: named corpora, each with its pins, its held-out sources and the Params of every stage."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from pydantic import (
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    create_model,
    model_serializer,
    model_validator,
)

from pipeline.core.errors import ParamsError, PinError, did_you_mean
from pipeline.core.params import Params
from pipeline.core.registry import Registry
from pipeline.core.settings.overrides import Overrides, combine, values_of
from pipeline.core.settings.recipe_files import RecipeKind, name_of
from pipeline.pins.build_block import BuildBlock
from pipeline.pins.corpora import CORPORA_FILE, Corpus, load_corpora
from pipeline.pins.decisions import DECISIONS_FILE, Decision, load_decisions
from pipeline.pins.held_out import HeldOut
from pipeline.pins.pins import SourcePin, load_pins, read_tables
from pipeline.stages.collect.params import CollectParams
from pipeline.stages.enrich.params import EnrichParams
from pipeline.stages.normalize.params import NormalizeParams
from pipeline.stages.stages import STAGES, reserved_names
from pipeline.stages.tokenize.params import TokenizeParams
from pipeline.stages.verify.params import VerifyParams

ROOT = Path(__file__).parents[2]


class CorpusParams(Params):
    """Everything that decides a corpus, besides its pins. The defaults are the recipe `quick`, with wider bands.

    A stage of STAGES without a field here is a field too: its Params are read with `of_stage`, and are its defaults unless given.
    """

    model_config = ConfigDict(extra="allow")

    held_out: HeldOut = HeldOut()
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
    """A named corpus."""

    name: str
    pins: Path | None = None
    """The pins file. One that is given in its place by `--pins` leaves out `sources`, `builds` and the bands that go with it."""
    sources: tuple[str, ...] = ()
    """Names of the pins to build; empty means every pin of the file."""
    params: CorpusParams
    builds: Mapping[str, BuildBlock] = {}
    """Build blocks of sources that a compiler reads too, by name. A block of the pin itself has precedence."""


def recipe_document() -> type[Params]:
    """Return the model of a recipe's file: the fields of a recipe and of its Params, with every stage that is registered now."""
    return _document_with(STAGES.names)


def recipe_of(given: str, *further: Overrides, pins_file: Path | None = None) -> Recipe:
    """Return the recipe of a name, or of a TOML file, with what further layers set.

    Bands of drops are measured over some sources: for a pins file given in place of those, the default ones replace them.
    Raises ParamsError naming the file or the setting that cannot be used.
    """
    pins = () if pins_file is None else (Overrides("--pins", {"pins": str(pins_file)}),)
    return _combined(name_of(given), (*RECIPE_KIND.layers(given, RECIPES), *pins, *further))


def corpus_recipe(corpus: Corpus) -> Recipe:
    """Return the recipe of a declared corpus, with its pins and what it sets otherwise. Raises ParamsError naming the entry."""
    try:
        return recipe_of(corpus.recipe, *corpus.layers(), pins_file=corpus.pins)
    except ParamsError as error:
        if error.subject.startswith(corpus.subject):
            raise
        raise ParamsError(f"{corpus.subject}: recipe: {error.subject}", *error.args[1:]) from None


def recipe_values(recipe: Recipe, only_set: bool = False) -> dict[str, Any]:
    """Return a recipe as its file would hold it: with every field, or with those that are set."""
    own = {name: value for name, value in values_of(recipe, only_set).items() if name not in _NOT_IN_FILES}
    stages = {name: values_of(recipe.params.of_stage(name), only_set) for name in STAGES.names}
    return own | values_of(recipe.params, only_set) | stages


def _combined(name: str, layers: Sequence[Overrides]) -> Recipe:
    found = combine(recipe_document(), _without_replaced(layers), f"recipe {name}")
    values = {field: getattr(found, field) for field in type(found).model_fields}
    own = {field: values.pop(field) for field in Recipe.model_fields if field in values}
    return Recipe(name=name, params=CorpusParams(**values), **own)


def _without_replaced(layers: Sequence[Overrides]) -> list[Overrides]:
    """Leave out what was chosen or measured for pins in whose place a later layer has others."""
    with_pins = [number for number, layer in enumerate(layers) if "pins" in layer.values]
    if len(with_pins) < 2:
        return list(layers)
    replaced, last = with_pins[-2] + 1, layers[with_pins[-1]]
    entries = _pin_entries(last.folder / str(last.values["pins"]))
    return [*(_without_slice(layer, entries) for layer in layers[:replaced]), *layers[replaced:]]


def _pin_entries(path: Path) -> list[Mapping[str, Any]]:
    """Return the entries of a pins file; none of one that a build will refuse."""
    try:
        return [entry for _, entry in read_tables(path, "pin")]
    except PinError:
        return []


def _without_slice(layer: Overrides, entries: Sequence[Mapping[str, Any]]) -> Overrides:
    """Leave out the slice of other pins, what is about sources that these entries lack, and about histories if none has one."""
    values = {name: value for name, value in layer.values.items() if name not in ("sources", "builds")}
    normalize = values.get("normalize")
    if isinstance(normalize, Mapping):
        values["normalize"] = {name: value for name, value in normalize.items() if name != "drop_bands"}
    collect = values.get("collect")
    if isinstance(collect, Mapping) and not any(entry.get("history") for entry in entries):
        values["collect"] = {name: value for name, value in collect.items() if name != "with_changes"}
    if "held_out" in values:
        values["held_out"] = _held_out_among(values["held_out"], [str(entry.get("name")) for entry in entries])
    return replace(layer, values=values)


def _held_out_among(value: Any, names: Sequence[str]) -> Any:
    """Return a rule without sources that are not among these names. What is no rule stays, to be refused with its layer."""
    try:
        return HeldOut.model_validate(value).among(names).model_dump(mode="json", exclude_unset=True)
    except ValidationError:
        return value


@cache
def _document_with(stages: tuple[str, ...]) -> type[Params]:
    fields: dict[str, Any] = {
        name: (info.annotation, info)
        for model in (Recipe, CorpusParams)
        for name, info in model.model_fields.items()
        if name not in _NOT_IN_FILES
    }
    for name in stages:
        if name not in fields:
            kind = STAGES[name].params_class()
            fields[name] = (kind, Field(default_factory=kind, description=f"Params of the stage {name}."))
    return create_model("RecipeFile", __base__=Params, **fields)


_NOT_IN_FILES = ("name", "params")
"""Fields of Recipe that its file has no line for: its name is that of the file, and the fields of its Params are its own."""
RECIPE_KIND = RecipeKind(
    "recipe",
    Path(__file__).parent / "shipped_recipes",
    partial(recipe_values, only_set=True),
    ("model", "optimizer"),
    "python -m trainer train --recipe FILE --out FOLDER",
)
TINY, QUICK, FULL, FULL_BUILT, *_OTHERS = (
    _combined(name, RECIPE_KIND.shipped(name)) for name in ("tiny", "quick", "full", "full-built", "history")
)
RECIPES = Registry("recipe", TINY, QUICK, FULL, FULL_BUILT, *_OTHERS)


def corpora_file(variables: Mapping[str, str]) -> Path:
    """Return the path of the declared corpora: SLUICE_CORPORA, else `corpora.toml` at the root of the project.

    Raises PinError for a file that SLUICE_CORPORA names and that is not there: nothing would be declared.
    """
    given = variables.get("SLUICE_CORPORA")
    path = Path(given or ROOT / CORPORA_FILE)
    if given and not path.is_file():
        found, remedy = "cannot be read: there is no such file", "Correct SLUICE_CORPORA, or unset it."
        raise PinError(str(path), found, "the corpora that SLUICE_CORPORA names", remedy)
    return path


def expected_params(corpus: str, declared: Path) -> CorpusParams | None:
    """Return the Params of a corpus's recipe: that which is declared, else the one of its name. None without one."""
    corpora = load_corpora(declared, RECIPES.names) if declared.exists() else ()
    for each in corpora:
        if each.name == corpus:
            return corpus_recipe(each).params
    return RECIPES[corpus].params if corpus in RECIPES else None


def with_items(params: CorpusParams, items_folder: Path) -> CorpusParams:
    """Return Params with the evaluation items of a folder beside those that are shipped."""
    rules = params.normalize.decontamination.model_copy(update={"items_folder": str(items_folder.absolute())})
    return params.model_copy(update={"normalize": params.normalize.model_copy(update={"decontamination": rules})})


def with_vocabulary(params: CorpusParams, files: Mapping[str, bytes], folder: Path) -> CorpusParams:
    """Return Params whose vocabulary, if it is not shipped, is that of its stored files, written below `folder`."""
    from pipeline.stages.tokenize.vocabulary import is_shipped  # other commands do not wait for its library

    name = params.tokenize.vocabulary_name
    if is_shipped(name):
        return params
    place = folder.absolute() / name
    place.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (place / file).write_bytes(content)
    return params.model_copy(update={"tokenize": params.tokenize.model_copy(update={"vocabulary": str(place)})})


def pins_of(recipe: Recipe) -> tuple[SourcePin, ...]:
    """Load the pins that a build collects: the recipe's slice of its pins file, or every pin of it."""
    path = pins_file_of(recipe)
    pins = tuple(_with_build(pin, recipe.builds.get(pin.name)) for pin in pins_in(path))
    missing = sorted({*recipe.sources, *recipe.builds} - {pin.name for pin in pins})
    if missing:
        found, names = f"{path.name} has no pin {', '.join(missing)}", [pin.name for pin in pins]
        remedy = did_you_mean(missing[0], names, f"Name some of its pins: {', '.join(names[:20])}.")
        raise PinError(f"recipe {recipe.name}", found, "all that `sources` and `builds` name", remedy)
    if not recipe.sources:
        return pins
    return tuple(pin for pin in pins if pin.name in recipe.sources)


def names_of_pins(recipe: Recipe) -> list[str]:
    """Return the names of the pins that a build collects, by the file alone. Raises PinError for one that cannot be read."""
    names = [str(entry.get("name")) for _, entry in read_tables(pins_file_of(recipe), "pin")]
    return [name for name in names if not recipe.sources or name in recipe.sources]


def pins_in(path: Path) -> tuple[SourcePin, ...]:
    """Load every pin of a file. Raises PinError for one that no build takes, by its name or its license too."""
    from pipeline.stages.collect.kinds.source_kinds import SOURCE_KINDS  # other commands do not wait for their modules

    pins = load_pins(path, SOURCE_KINDS)
    for pin in pins:
        refuse_reserved(pin.name, f"{path}: {pin.name}")
    if not path.is_relative_to(Path(__file__).parents[1]):  # those of the package are known to have
        _refuse_no_licenses(pins, str(path))
    return pins


def _refuse_no_licenses(pins: Iterable[SourcePin], subject: str) -> None:
    """Raise PinError for a pin whose declared license is no SPDX expression: no file could inherit it."""
    from pipeline.stages.normalize.license.policy import (
        refuse_no_expression,  # a build of a recipe's pins does not wait
    )

    for pin in pins:
        if pin.declared_license:
            refuse_no_expression(pin.declared_license, f"{subject}: {pin.name}")


def decisions_of(recipe: Recipe, decisions_file: Path | None = None) -> tuple[Decision, ...]:
    """Load the decisions about the sources that `pins_of` loads: those beside the pins file, if any, or those of a file given.

    Raises DecisionError for a decision that cannot be used.
    """
    pins = pins_file_of(recipe)
    path = decisions_file or pins.with_name(DECISIONS_FILE)
    if decisions_file is None and not path.exists():
        return ()
    decisions = load_decisions(path, (str(entry.get("name")) for _, entry in read_tables(pins, "pin")))
    if decisions:
        from pipeline.stages.normalize.decidable import refuse_undecidable  # a build without decisions does not wait

        refuse_undecidable(decisions, str(path))
    return tuple(each for each in decisions if not recipe.sources or each.source in recipe.sources)


def pins_file_of(recipe: Recipe) -> Path:
    """Return the pins file of a recipe. Raises PinError for a recipe without."""
    if recipe.pins is None:
        remedy = 'Write `pins = "mine.toml"` in the recipe, or give one by `--pins`.'
        raise PinError(f"recipe {recipe.name}", "it names no pins", "a pins file", remedy)
    return recipe.pins


def refuse_reserved(name: str, subject: str) -> None:
    """Raise PinError about `subject` if a source has the name of a part that belongs to no source."""
    reserved = reserved_names()
    if name in reserved:
        found, expected = f"name is {name!r}", f"any name but {', '.join(sorted(reserved))}"
        raise PinError(subject, found, expected, "Stages use those names for parts of their own: rename the entry.")


def _with_build(pin: SourcePin, block: BuildBlock | None) -> SourcePin:
    return pin if block is None or pin.build is not None else pin.model_copy(update={"build": block})
