"""Commits as sources: the pin of one, and the rows or the error that collecting it ends in."""

from pipeline.core.errors import SourceError
from pipeline.stages.collect.kinds.git import GitPin
from pipeline.stages.collect.params import RetryPolicy
from pipeline.stages.collect.stage import run
from tests.pipeline.stages.collect.conftest import Surroundings
from tests.support.git_repository import Repository


def pin_of(repository: Repository, commit: str, **more: object) -> GitPin:
    """Pin a commit of the repository."""
    return GitPin(name="demo", url=repository.url, commit=commit, declared_license="MIT", **more)  # type: ignore[arg-type]


def rows(context: Surroundings, table: str, *columns: str) -> list[tuple[object, ...]]:
    """Return the rows of a collected table, with these columns alone."""
    found = context.made["demo"].tables[table].to_pylist()
    return [tuple(row[column] for column in columns) for row in found]


def failure(context: Surroundings, retry: RetryPolicy) -> SourceError:
    """Collect the source, and return the error that it ends in."""
    output = run(context, retry)
    assert output.parts == {}
    return output.failures["demo"]
