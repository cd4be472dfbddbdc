"""Resources of the assets: the store, the declared corpora, and the build of a corpus, which locks it until its last stage."""

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import dagster as dg
from dagster._utils.schedules import is_valid_cron_schedule
from pydantic import Field, PrivateAttr, create_model

from assets.forms import CORRECT_AND_LAUNCH, EmptyFields, name_choice, overridden, params_from
from assets.instance import mark_worker, repeat_ignored_interrupts, sweep, tag_corpus
from assets.keys import build_key, op_name, stage_key
from pipeline.build.build import Build, BuildRequest, Listener, open_build, refuse_unusable
from pipeline.build.engines.engine_kinds import ENGINES
from pipeline.build.recipes import (
    RECIPES,
    ROOT,
    CorpusParams,
    Recipe,
    corpora_file,
    corpus_recipe,
    decisions_of,
    names_of_pins,
    pins_of,
    recipe_of,
)
from pipeline.build.run_stage import StageResult, run_stage
from pipeline.build.stage_objects import chain_params
from pipeline.core.command_line import OUT_OF_MEMORY, UNMOVED, describe_defect, describe_failure, with_options
from pipeline.core.errors import ParamsError, PinError, SluiceError, did_you_mean
from pipeline.core.params import Params
from pipeline.core.settings.fields import expected
from pipeline.core.settings.overrides import refuse_conflicts, setting, settings_of
from pipeline.pins.corpora import Corpus, load_corpora
from pipeline.stages.stages import STAGES, stage_before
from pipeline.storage.open_storage import open_folder
from pipeline.store.store import Store
from pipeline.store.store_layout import default_store, refuse_bad_corpus
from trainer.config.training_config import training_recipe


def store_root() -> Path:
    """Return the path of the store: SLUICE_STORE (of a bucket its cache), else `store/` at the root of the project."""
    return open_folder(default_store(os.environ))


def declared_corpora() -> tuple[Corpus, ...]:
    """Load the corpora of SLUICE_CORPORA, else of `corpora.toml` at the root of the project.

    Raises PinError for an entry, and ParamsError for a recipe, of the corpus or of its trainings, or a field that it sets, that
    cannot be used.
    """
    corpora = load_corpora(corpora_file(os.environ), RECIPES.names)
    for corpus in corpora:
        if corpus.engine not in ENGINES:
            known = f"one of {', '.join(ENGINES.names)}"
            remedy = did_you_mean(corpus.engine, ENGINES.names, "Correct the name of the engine.")
            raise PinError(corpus.subject, f"engine is {corpus.engine!r}", known, remedy)
        if corpus.nightly is not None and not is_valid_cron_schedule(corpus.nightly):
            example = "minute hour day month weekday within their bounds, such as `30 4 * * *`"
            raise PinError(corpus.subject, f"nightly is {corpus.nightly!r}", example, "Correct the entry.")
        _refuse_reserved_name(corpus)
        corpus_recipe(corpus)
        _refuse_bad_training(corpus)
    return corpora


def _refuse_reserved_name(corpus: Corpus) -> None:
    try:
        refuse_bad_corpus(corpus.name)
    except ParamsError as error:
        raise PinError(corpus.subject, error.found, error.expected, error.remedy) from None


def _refuse_bad_training(corpus: Corpus) -> None:
    """Raise ParamsError naming the entry if no training could begin with what it declares."""
    try:
        training_recipe(corpus.training.recipe, *corpus.training_layers())
    except ParamsError as error:
        if error.subject.startswith(corpus.subject):
            raise
        raise ParamsError(f"{corpus.subject}: training.recipe: {error.subject}", *error.args[1:]) from None


def refusal_of(corpus: Corpus) -> str:
    """Return in a sentence why no build of a corpus can begin, as its files, its rule of what is held out and the names of its
    pins tell; nothing if one can.
    """
    for name, path in (("pins", corpus.pins), ("decisions", corpus.decisions)):
        if path is not None and not path.is_file():
            found = f"{name} is {str(path)!r}, and there is no such file"
            return str(PinError(corpus.subject, found, "an existing file, relative to the list", "Correct the entry."))
    recipe = corpus_recipe(corpus)
    if corpus.recipe in RECIPES and recipe == RECIPES[corpus.recipe]:
        return ""  # as it is shipped
    try:
        recipe.params.held_out.refuse_idle_sources(names_of_pins(recipe))
    except (ParamsError, PinError) as error:
        return str(type(error)(f"{corpus.subject}: {error.subject}", *error.args[1:]))
    return ""


@contextmanager
def refusals(corpus: str, step: str, left: str = UNMOVED) -> Iterator[None]:
    """Turn any error of a step into a one-sentence failure without retries; of a defect, whose words say neither, with what broke.

    Commands that it names are of the corpus; `left` says what is left then. An alert has nothing but the sentence.
    """
    cause = None
    try:
        yield
    except (dg.Failure, dg.RetryRequested, dg.DagsterError):
        raise
    except SluiceError as error:
        message = f"{type(error).__name__}: {error}"
    except OSError as error:
        unnamed = f"the store {default_store(os.environ)}"
        message = f"{type(error).__name__}: {describe_failure(error, unnamed, left)}"
    except MemoryError:
        message = f"{MemoryError.__name__}: {OUT_OF_MEMORY}"
    except (Exception, SystemExit) as error:  # a library that ends the process has not done the step
        cause, of = error, f" of corpus {corpus}" if corpus else ""
        message = f"{step}{of} raised {describe_defect(error)}. {left} Report it with the error below it in the log of the run."
    else:
        return
    raise dg.Failure(with_options(message, corpus, default_store(os.environ)), allow_retries=False) from cause


class StoreResource(dg.ConfigurableResource[Any]):
    """The store, for runs that read it or move a ref. Tags the run with its worker and fails dead runs."""

    def open(self) -> Store:
        return Store(store_root())

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        _prepare_run(context)


class BuildResource(EmptyFields, dg.ConfigurableResource[Any]):
    """The build of one corpus: it stays locked until the last stage of the run, and the kernel unlocks it if the run is killed.

    A training that the same run begins after it locks nothing: others build, promote and withdraw meanwhile.

    It begins with the first stage that asks for it: what is wrong with its pins is an error of that stage, and of no other corpus.
    """

    recipe: str = Field(
        description="Recipe whose parameters count, but for what is set below and in the forms of the stages."
    )
    recipe_file: str = Field(
        default="", description="Path of a TOML file of a recipe in place of `recipe`; that if empty."
    )
    set: list[str] = Field(
        default=[],
        description="Fields of the recipe to set, each as FIELD=VALUE, such as `tokenize.row_length=1024`.",
    )
    pins: str = Field(description="Path of a pins file to build in place of the recipe's sources; those if empty.")
    decisions: str = Field(
        description="Path of a file of decisions; decisions.toml beside the pins, if there is one, if empty.",
    )
    workers: int = Field(default=2, description="Worker processes, 1 to 256. The bytes are the same for any number.")
    engine: str = Field(default="local", description="What makes the parts: `local`, or `ray`, a cluster.")
    address: str = Field(default="", description="Address of a Ray cluster that is there already; none if empty.")
    offline: bool = Field(default=False, description="Use archives in the store only.")
    wait_seconds: float = Field(
        default=3600.0, description="Seconds to wait for another build of the corpus, at least 0."
    )

    corpus: ClassVar[str] = ""
    forms: ClassVar[Mapping[str, type[Params]]] = {}
    folder: ClassVar[Path] = ROOT
    """Folder that relative paths in `set` are relative to: that of the list of corpora."""
    _opened: ExitStack = PrivateAttr(default_factory=ExitStack)
    _context: Any = PrivateAttr(default=None)
    _build: Build | None = PrivateAttr(default=None)
    _ids: dict[str, str] = PrivateAttr(default_factory=dict)

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["BuildResource"]:
        _prepare_run(context)
        self._context = context
        with self._opened:
            yield self

    @property
    def recipe_name(self) -> str:
        """The name of the recipe: the launchpad gives it as a member of an enum."""
        return str(getattr(self.recipe, "value", self.recipe))

    @property
    def build(self) -> Build:
        """The build of this run, which locks its corpus now unless it has."""
        if self._context is None:
            raise RuntimeError("a build exists only inside a run")
        if self._build is None:
            self._build = self._opened.enter_context(self._open(self._context))
        return self._build

    def run(self, stage: str, overrides: dg.Config, listen: Listener) -> StageResult:
        """Run a stage on the output of the stage before in this run or, if that was not part of it, on the ref of the corpus."""
        build = self.build
        params = overridden(overrides, build.params.of_stage(stage))
        before = stage_before(stage)
        previous = (self._ids.get(before) or build.store.ref(build.corpus, before)) if before else None
        whole = build.params.model_copy(update={**chain_params(build.store, previous), stage: params})
        request = replace(build.request, params=whole)
        result = run_stage(stage, replace(build, request=request, listen=listen), previous)
        self._ids[stage] = result.object_id
        return result

    def unlock_after(self, stage: str) -> None:
        """Release the corpus if the run makes no stage after this one: what is told of it must be told by then, as refs move."""
        if stage == self._last_stage():
            self._opened.close()
            self._build = None

    def _last_stage(self) -> str:
        """Return the last stage that the run makes: of a job that selects no assets, the last of all."""
        chosen = None if self._context.run is None else self._context.run.asset_selection
        made = [name for name in STAGES.names if chosen is None or stage_key(self.corpus, name) in chosen]
        return (made or STAGES.names)[-1]

    def _open(self, context: dg.InitResourceContext) -> AbstractContextManager[Build]:
        if context.instance is not None and context.run is not None:
            tag_corpus(context.instance, context.run.run_id, self.corpus)
        self._refuse_empty_fields()
        recipe = self.asked()
        given: Any = {} if context.run is None else context.run.run_config.get("ops", {})
        asked = self._with_forms(recipe.params, given)
        request = BuildRequest(
            corpus=self.corpus,
            params=recipe.params,
            pins=pins_of(recipe),
            who=f"run {context.run.run_id}" if context.run is not None else "a run",
            num_workers=self.workers,
            engine=self.engine,
            address=self.address,
            offline=self.offline,
            wait_seconds=self.wait_seconds,
            decisions=decisions_of(recipe, decisions_file=Path(self.decisions) if self.decisions else None),
        )
        refuse_unusable(asked, request.pins)

        def on_wait(holder: str) -> None:
            if context.log is not None:
                context.log.warning(f"corpus {self.corpus} is being written by {holder}: waiting until it is done")

        return open_build(request, Store(store_root()), on_wait=on_wait)

    def _refuse_empty_fields(self) -> None:
        """Raise ParamsError for a field that a launch left empty: Dagster takes None for any."""
        for name, info in type(self).model_fields.items():
            if getattr(self, name) is None:
                raise ParamsError(self._named(name), "it is null", expected(info), CORRECT_AND_LAUNCH)

    def _named(self, field: str) -> str:
        return f"field {field} of the launchpad's resource {build_key(self.corpus)}"

    def _with_forms(self, params: CorpusParams, ops: Mapping[str, Any]) -> CorpusParams:
        """Return Params with what the forms of the stages set.

        Raises ParamsError for a field of this run that no step can use: before the first stage, not after an hour of others.
        """
        bounds = {
            "workers": ("1 to 256", 1 <= self.workers <= 256),
            "engine": (f"one of {', '.join(ENGINES.names)}", self.engine in ENGINES),
            "wait_seconds": ("0 or more", self.wait_seconds >= 0),
        }
        for name, (wanted, is_within) in bounds.items():
            if not is_within:
                found = f"it is {getattr(self, name)!r}"
                raise ParamsError(self._named(name), found, wanted, CORRECT_AND_LAUNCH)
        given = {name: op.get("config", {}) for name, op in ops.items()}
        for name, kind in self.forms.items():
            params_from(given.get(name, {}), kind)
        forms = {stage: given.get(op_name(stage_key(self.corpus, stage)), {}) for stage in STAGES.names}
        return params.model_copy(update={name: overridden(form, params.of_stage(name)) for name, form in forms.items()})

    def asked(self) -> Recipe:
        """Return the recipe with what is declared, the default of `set`, and above it what is set. Raises ParamsError."""
        declared, launched = (
            [replace(setting(text, "set"), folder=self.folder) for text in texts]
            for texts in (type(self).model_fields["set"].default, self.set)
        )
        refuse_conflicts(launched)
        given = self.recipe_file or self.recipe_name
        return recipe_of(given, *declared, *launched, pins_file=Path(self.pins) if self.pins else None)


def build_resource(corpus: Corpus, forms: Mapping[str, type[Params]] = MappingProxyType({})) -> BuildResource:
    """Return the build resource of a declared corpus: its recipe is one of those that are registered now.

    What is declared are the defaults of the fields: Dagster gives a field that a launch leaves out its default. `forms` are the
    Params of the ops that follow the stages, by name: a build judges their fields before its first stage.
    """
    names = name_choice(tuple(dict.fromkeys((*RECIPES.names, corpus.recipe))))
    declared: dict[str, tuple[Any, Any]] = {
        "recipe": (names, names(corpus.recipe)),
        "set": (list[str], settings_of(corpus.set)),
        "pins": (str, str(corpus.pins or "")),
        "decisions": (str, str(corpus.decisions or "")),
        "engine": (str, corpus.engine),
        "address": (str, corpus.address),
    }
    fields: dict[str, Any] = {
        name: (kind, Field(value, description=BuildResource.model_fields[name].description))
        for name, (kind, value) in declared.items()
    }
    resource: Any = create_model(build_key(corpus.name), __base__=BuildResource, **fields)
    resource.corpus, resource.forms, resource.folder = corpus.name, forms, corpus.folder
    return resource()  # type: ignore[no-any-return]


def _prepare_run(context: dg.InitResourceContext) -> None:
    if context.instance is not None and context.run is not None:
        with refusals("", "the start of the run"):
            repeat_ignored_interrupts()
            mark_worker(context.instance, context.run.run_id)
            sweep(context.instance)
