"""The figure `overrides`: leaf fields of recipes that a file, an option, the launchpad or the list of corpora does not set."""

from pathlib import Path
from tempfile import TemporaryDirectory

from pipeline.build.recipes import recipe_document
from pipeline.core.settings.fields import leaf_fields
from tests.benchmarks.assets.field_walk import unreached_of_recipes, unreached_of_trainings
from tests.benchmarks.figure import Figure
from trainer.config.training_config import TrainingConfig


def overrides() -> list[Figure]:
    """Count them over the recipes of corpora and of trainings."""
    num_fields = sum(len(list(leaf_fields(model))) for model in (recipe_document(), TrainingConfig))
    with TemporaryDirectory() as folder:
        unreached = [*unreached_of_recipes(Path(folder)), *unreached_of_trainings(Path(folder))]
    unit = f"of {num_fields} fields, by file, option, launchpad and list, not reached"
    return [Figure("overrides", len(unreached), unit, "0", not unreached)]
