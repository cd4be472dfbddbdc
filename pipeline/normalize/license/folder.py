"""License texts of one folder, read together: the licenses that they are, and what is unclear about them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from pipeline.normalize.license.tags import LicenseClaim, find_tags, find_title
from pipeline.normalize.license.texts import recognize


@dataclass(frozen=True)
class FolderTexts:
    """The license texts of a folder. All of them hold.

    `problem` is why they are unclear, or None; `is_near` says that one is nearly a license. `is_of_source` says that they
    are in the top folder and speak of the whole source. `title` is a copyleft title with the path of its text, if any.
    """

    paths: tuple[str, ...]
    expressions: tuple[str, ...]
    lines: tuple[str, ...]
    problem: str | None
    is_near: bool
    is_of_source: bool
    title: tuple[str, LicenseClaim] | None


def read_folder(folder: str, texts: Mapping[str, str]) -> FolderTexts:
    """Read the texts directly in `folder`. A notice file counts only if there is no license text."""
    here = sorted(path for path in texts if str(PurePosixPath(path).parent) == folder)
    paths = [path for path in here if not PurePosixPath(path).name.lower().startswith("notice")] or here
    expressions: list[str] = []
    lines: list[str] = []
    problems: list[str] = []
    is_near = False
    for path in paths:
        if tags := find_tags(path, texts[path]):
            expressions += [tag.expression for tag in tags]
            lines += [f"{path}:{tag.line}: SPDX-License-Identifier: {tag.expression}" for tag in tags]
            continue
        found = recognize(texts[path])
        expressions += found.licenses
        is_near = is_near or found.near is not None
        title = find_title(texts[path])
        if found.problem:
            problems.append(f"{path} says `{title.words}`" if title else f"{path}: {found.problem}")
        lines.append(f"{path}: {found.problem or 'the text of ' + ' AND '.join(found.licenses)}")
    if "LGPL-3.0-only" in expressions and "GPL-3.0-only" in expressions:
        expressions.remove("GPL-3.0-only")  # LGPL-3.0 adds permissions to GPL-3.0, whose text accompanies it
    titles = [(path, title) for path in paths if (title := find_title(texts[path]))]
    return FolderTexts(
        paths=tuple(paths),
        expressions=tuple(dict.fromkeys(expressions)),
        lines=tuple(lines),
        problem="; ".join(problems) or None,
        is_near=is_near,
        is_of_source=folder == ".",
        title=max(titles, key=lambda item: item[1].license_class) if titles else None,
    )
