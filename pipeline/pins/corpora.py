"""Corpus: an entry of `corpora.toml`, the list of corpora that Dagster shows, each with its recipe and perhaps pins of its own.

[[corpus]]
name = "mine"
recipe = "quick"
pins = "mine.toml"
nightly = "30 4 * * *"
max_age_hours = 30

[corpus.training]
recipe = "training.toml"
set.optimizer.weight_decay = 0.05
"""

from collections.abc import Mapping, Sequence
from os.path import normpath
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PrivateAttr, ValidationError

from pipeline.core.errors import PinError, did_you_mean
from pipeline.core.params import Params
from pipeline.core.settings.overrides import Overrides
from pipeline.core.settings.recipe_files import names_file
from pipeline.pins.pins import PlainPath, Slug, by_name, first_error, read_tables

CORPORA_FILE = "corpora.toml"


class CorpusTraining(Params):
    """Recipe and fields that trainings on a corpus begin with. They are checked where trainings are known."""

    recipe: str = "tiny"
    """The training recipe: a name, or a TOML file relative to the list."""
    set: Mapping[str, Any] = {}
    """Fields that trainings have otherwise than that recipe, as a table or by dotted names."""


class Corpus(Params):
    """A corpus that is declared: the parameters and pins that it is built with, and when."""

    name: Slug
    recipe: str
    """The recipe whose Params it is built with: a name, or a TOML file relative to the list."""
    set: Mapping[str, Any] = {}
    """Fields that it has otherwise than its recipe, as a table or by dotted names."""
    pins: PlainPath | None = None
    """A pins file in place of the recipe's slice."""
    decisions: PlainPath | None = None
    """A file of decisions; decisions.toml beside the pins, if there is one, unless given."""
    engine: str = "local"
    """The engine that makes its parts when Dagster builds it: `local`, or `ray`, a cluster."""
    address: str = ""
    """Address of the cluster, HOST:PORT."""
    nightly: Annotated[str, Field(pattern=r"^[0-9*,/-]+( [0-9*,/-]+){4}$", max_length=100)] | None = None
    """Cron line, in UTC, by which it is built and promoted. None: by hand alone."""
    max_age_hours: Annotated[float, Field(ge=0.02, le=100_000, strict=True)] | None = None
    """Age from which its live snapshot is stale; None: never."""
    training: CorpusTraining = CorpusTraining()
    """Recipe and fields that the job which trains on it begins with."""
    _list: Path = PrivateAttr(default=Path(CORPORA_FILE))

    @property
    def folder(self) -> Path:
        """The folder of the list, which paths in it are relative to."""
        return self._list.absolute().parent

    @property
    def subject(self) -> str:
        """The entry, as errors name it."""
        return f"{self._list}: {self.name}"

    def layers(self) -> tuple[Overrides, ...]:
        """Return what it sets otherwise than its recipe."""
        return (Overrides(f"{self.subject}: set", self.set, self.folder),) if self.set else ()

    def training_layers(self) -> tuple[Overrides, ...]:
        """Return what trainings on it have otherwise than their recipe."""
        values = self.training.set
        return (Overrides(f"{self.subject}: training.set", values, self.folder),) if values else ()


def load_corpora(path: Path, recipes: Sequence[str]) -> tuple[Corpus, ...]:
    """Load the declared corpora in the order of the file: the first is that of the jobs `build`, `promote`, `train` and `nightly`.

    Raises PinError for an entry that cannot be used, and for a recipe that is not among `recipes`.
    """
    found = []
    for subject, entry in read_tables(path, "corpus"):
        try:
            corpus = Corpus.model_validate(entry)
        except ValidationError as error:
            _, what, expected = first_error(error, Corpus)
            raise PinError(subject, what, expected, "Correct the entry.") from None
        if not names_file(corpus.recipe) and corpus.recipe not in recipes:
            known = f"one of {', '.join(recipes)}, or a file"
            remedy = did_you_mean(corpus.recipe, recipes, "Correct the name of the recipe.")
            raise PinError(subject, f"recipe is {corpus.recipe!r}", known, remedy)
        folder = path.absolute().parent
        files: dict[str, Any] = {
            name: folder / value for name in ("pins", "decisions") if (value := getattr(corpus, name))
        }
        files |= {"recipe": normpath(folder / corpus.recipe)} if names_file(corpus.recipe) else {}
        if names_file(corpus.training.recipe):
            whole = {"recipe": normpath(folder / corpus.training.recipe)}
            files["training"] = corpus.training.model_copy(update=whole)
        found.append(corpus.model_copy(update=files))
        found[-1]._list = path.absolute()
    by_name(path, found)
    return tuple(found)
