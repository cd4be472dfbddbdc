"""Extents of the license texts that are recognized, and the digest of everything that recognition depends on."""

from functools import cache
from importlib.resources import files

from pipeline.core.params import digest

_TABLES = {
    "prose": ("license_names.toml", "legal_terms.toml", "short_lines.toml", "clauses.toml"),
    "licensors": ("licensor_classes.toml", "licensor_weights.json"),
}
_WHOLE = ("", "")
_NO_NAME = "except as contained in this notice no name be used in advertising"
"""Words that stand for the clause that names may not be used, whoever is named (`prose/words.py`)."""
_BSD = ("redistribution and use", "advised of the possibility of such damage")
_MIT = ("permission is hereby granted free of charge", "dealings in the software")
_GNU = ("everyone is permitted to copy", "end of terms and conditions")
EXTENTS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("0BSD", "HPND", "ISC", "SMLNJ"), ("permission to use copy", "performance of this software")),
    **dict.fromkeys(
        ("AGPL-3.0-only", "GPL-1.0-only", "GPL-2.0-only", "GPL-3.0-only", "LGPL-2.0-only", "LGPL-2.1-only"), _GNU
    ),
    **dict.fromkeys(
        ("BSD-1-Clause", "BSD-2-Clause", "BSD-3-Clause", "BSD-4-Clause", "BSD-4-Clause-UC", "BSD-Source-Code"), _BSD
    ),
    **dict.fromkeys(("BSL-1.0", "JSON", "MIT", "MIT-0"), _MIT),
    **dict.fromkeys(("CDDL-1.0", "curl", "FSFAP", "Unicode-3.0"), _WHOLE),
    **dict.fromkeys(
        ("AFL-1.1", "AFL-1.2", "AFL-2.0", "AFL-2.1", "Artistic-2.0", "CPL-1.0", "EPL-1.0", "EPL-2.0", "MPL-1.1"), _WHOLE
    ),
    **dict.fromkeys(("AFL-3.0", "APSL-2.0", "CDDL-1.1", "ECL-2.0", "FTL", "IJG", "Intel", "Libpng"), _WHOLE),
    **dict.fromkeys(
        ("MulanPSL-2.0", "Python-2.0", "TCL", "Unicode-DFS-2015", "Unicode-DFS-2016", "W3C", "ZPL-2.1"), _WHOLE
    ),
    "Apache-2.0": ("terms and conditions for use", "such warranty or additional liability"),
    "Apache-1.1": ("redistribution and use", "advised of the possibility of such damage"),
    **dict.fromkeys(("BSD-2-Clause-Patent", "BSD-3-Clause-Clear", "BSD-3-Clause-Open-MPI", "bzip2-1.0.6"), _BSD),
    "BSD-2-Clause-Views": (_BSD[0], "of the copyright holders or contributors"),
    "BSD-3-Clause-LBNL": ("redistributions of source code must retain", "in binary and source code form"),
    "BlueOak-1.0.0": ("purpose this license gives", "any kind of legal claim"),
    **dict.fromkeys(("HPND-sell-variant", "libtiff"), ("permission to use copy", "performance of this software")),
    "ICU": ("permission is hereby granted", _NO_NAME),
    "MIT-CMU": ("by obtaining using", "performance of this software"),
    "MIT-Modern-Variant": ("permission is hereby granted without", "enhancements or modifications"),
    "NTP": ("permission to use copy", "express or implied warranty"),
    "UPL-1.0": ("subject to the condition", "dealings in the software"),
    "zlib-acknowledgement": ("this software is provided as is", "from any source distribution"),
    "Boehm-GC": ("permission is hereby granted to use or copy", "with the above copyright notice"),
    "SSH-short": ("as far as i am concerned the code", "other than ssh or secure shell"),
    "dtoa": ("permission to use copy", "fitness for any particular purpose"),
    "SunPro": ("permission to use copy", "notice is preserved"),
    "CC0-1.0": ("statement of purpose", "use of the work"),
    "LGPL-3.0-only": ("this version of the gnu lesser", "choose that version for the library"),
    "libpng-2.0": ("the software is supplied as is", "altered source distribution"),
    "MPL-2.0": ("contributor means each individual", "notice described in exhibit b"),
    "NCSA": ("permission is hereby granted", "dealings with the software"),
    "PostgreSQL": ("permission to use copy", "enhancements or modifications"),
    "PSF-2.0": ("this license agreement is between", "terms and conditions of this license agreement"),
    "Qhull": ("it may be freely copied", "act on them as they desire"),
    "Unlicense": ("this is free and unencumbered", "dealings in the software"),
    "WTFPL": ("you just do what", "you want to"),
    "X11-distribute-modifications-variant": (_MIT[0], _NO_NAME),
    "X11": (_MIT[0], _NO_NAME),
    "Zlib": ("this software is provided as is", "from any source distribution"),
}
"""The recognized licenses, and the words that their operative part begins and ends with: titles are optional."""


@cache
def texts_digest() -> str:
    """Return a digest of what is recognized: extents, names, terms of sentences and weights."""
    folder = files("pipeline.stages.normalize.license")
    tables = {
        name: folder.joinpath(room, name).read_text(encoding="utf-8")
        for room, names in _TABLES.items()
        for name in names
    }
    return digest({"extents": EXTENTS, **tables})
