"""Refusals of sources: of what reading one raises, and of one that holds no code."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.contracts.part import Tables
from pipeline.core.errors import ArchiveError, LargeSourceError, SluiceError, SourceError
from pipeline.core.table_names import DROPPED, FILES
from pipeline.lexing.languages import is_source
from pipeline.stages.collect.contents import LEAVE_OUT, SkippedFile, SourceContents, is_of_disk


@contextmanager
def naming_source(source: str) -> Iterator[None]:
    """Turn whatever a source's bytes make its reader raise into an ArchiveError that names it, so that the others go on.

    An OSError of the disk stays one: a reader of bytes that are there and verified meets no other by itself.
    """
    try:
        yield
    except ArchiveError as error:
        if error.subject.startswith(source):
            raise
        raise ArchiveError(source, f"{error.subject}: {error.found}", error.expected, LEAVE_OUT) from error
    except SluiceError:
        raise
    except Exception as error:
        if is_of_disk(error):
            raise
        found = f"it cannot be read ({type(error).__name__}: {str(error)[:500]})"
        raise ArchiveError(source, found, "a source that every reader reads alike", LEAVE_OUT) from error


def refuse_empty(source: str, contents: SourceContents) -> None:
    """Raise SourceError for a source without a source file, with the reasons for which its files were skipped."""
    if any(is_source(file.path) for file in contents.files):
        return
    reasons = Counter(skipped.reason for skipped in contents.skipped)
    evidence = [file.path for file in contents.files]
    counts = [f"{number} {reason}" for reason, number in sorted(reasons.items())]
    counts += [f"{len(evidence)} read for its license alone, such as {evidence[0][:200]}"] if evidence else []
    skipped = ", ".join(counts) or "it is empty"
    examples = "; ".join(_example(item)[:200] for item in contents.skipped[:3] if item.detail)
    found = f"it holds no source file ({skipped}{'; ' + examples if examples else ''})"
    remedy = "Check its kind, `include` and `exclude`, and the fields of its lines; or leave it out."
    raise SourceError(source, found, "at least one file in a language that is read", remedy)


def _example(skipped: SkippedFile) -> str:
    """Return the path of what was skipped and why. A line that has no path is named by its number, which the reason begins with."""
    is_told = skipped.detail.startswith(f"{skipped.path}: ")
    return skipped.detail if is_told else f"{skipped.path}: {skipped.detail}"


def refuse_large(source: str, contents: SourceContents, max_num_bytes: int) -> None:
    """Raise LargeSourceError for a source in one part of more bytes than a shard may have."""
    num_bytes = sum(file.num_bytes for file in contents.files)
    if num_bytes > max_num_bytes:
        found = f"it holds {num_bytes} bytes of files in one part"
        raise LargeSourceError(source, found, f"at most {max_num_bytes}", "Build again: it is read in shards.")


def num_bytes_of(read: Tables) -> int:
    """Return the bytes of all files of a source that was read, skipped ones included."""
    return sum(sum(read.table(name, ["num_bytes"])["num_bytes"].to_pylist()) for name in (FILES, DROPPED))
