"""Files of C and C++: headers that look like C++, and the file that an include means."""

import pytest

from pipeline.lexing.c_files import languages_of_header, resolve_include

BY_NAME = {"b.h": ["inc/b.h", "lib/x/b.h", "src/b.h"], "string.h": ["inc/string.h"]}


@pytest.mark.parametrize(
    ("path", "written", "found"),
    [
        ("src/a.c", '"b.h"', "src/b.h"),
        ("lib/y/a.c", '"b.h"', "lib/x/b.h"),
        ("src/a.c", "<x/b.h>", "lib/x/b.h"),
        ("src/a.c", "<string.h>", None),
        ("src/a.c", '"no.h"', None),
    ],
)
def test_an_include_means_the_nearest_file_of_its_name(path: str, written: str, found: str | None) -> None:
    assert resolve_include(path, written, BY_NAME) == found


@pytest.mark.parametrize(
    ("content", "languages"),
    [
        (b"namespace a {}\n", ("cpp",)),
        (b"int f(int a);\n", ("c", "cpp")),
        (b"// namespace a {}\nint a;\n", ("c", "cpp")),
        (b'#ifdef __cplusplus\nextern "C" { class A; }\n#endif\nint a;\n', ("c", "cpp")),
    ],
)
def test_a_header_is_cpp_by_its_code_outside_of_comments_and_guards(content: bytes, languages: tuple[str, ...]) -> None:
    assert languages_of_header(content) == languages
