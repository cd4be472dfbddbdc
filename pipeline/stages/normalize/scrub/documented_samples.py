"""Documented samples: credentials that standards and vendors print as examples, by their digests. They open nothing and stay.

To add one, add the first 24 digits of the SHA-256 of its value, without `=` at its end; of a JSON web token, of its second part.
"""

import hashlib
import re

_NUM_DIGITS = 24
_DIGESTS_BY_ORIGIN = {
    "RFC 7617": """
        d05f6bb1aa2e4ccd9e4a1d22 d16eedf622d61fda0d0a3663
    """,
    "RFC 2617": """
        73f71af093fdf1541b2c376f
    """,
    "RFC 7519, 7515": """
        32cd61d7a4d1ae9f72ad09c7
    """,
    "RFC 6749, 6750": """
        6c96130f130ab0d6d158397e 00cf4c781dc37003f7c7dd7d b8e148545b13c78bc74da2f1 ca7459e2b26776de081b9a07
        53f5da0aaa93d64cd5772c55 e9974c507d2a802143f614c8 a35b81a7d7927b70ec99270d
    """,
    "RFC 5849": """
        293257ab6495ebb11cf9e4ae cb87c87e4a138d9a72259d2a bb9b1163338b2a51495834ad 649e1f5c769e718ba10d1a70
        c20fbc2b96183894fb461879 b87dad10a32a2d81aa2e36e3 4c20e6f5cc11b93731e74cbe 6aa14267d94944e6b6483c81
    """,
    "Azure Storage emulator": """
        ed967197261c16a9ed0205f8
    """,
    "Azure Cosmos DB emulator": """
        eaa6a9190faf5587f487fe51
    """,
    "Twitter's documentation of OAuth": """
        8e0628300c16fe3834b3b87d 00b3dc640c9c99fcdbdab6f6 0e04efa6bc7d2d512fc108c5 5aac38e542b76b97b3518c02
    """,
    "Stripe's documentation": """
        2cafc0970149a84f3b9e62ea f2d6ca16515033e5dce14eba
    """,
    "the XMP specification": """
        bf7fed82de81ed138d378940
    """,
    "MS-NLMP": """
        290c4a052c215d096172eb81
    """,
    "RFC 6455": """
        eb543dc490df6d053d360d3b 1f5cb9b0015ad374b2b11381
    """,
}
_DIGESTS = frozenset(digest for digests in _DIGESTS_BY_ORIGIN.values() for digest in digests.split())
_EXAMPLE = re.compile(r"[A-Za-z0-9/+_-]{8}EXAMPLE(?:KEY|TOKEN|ID)?\Z")


def is_documented(value: str) -> bool:
    """Return whether a value is a sample of documentation, by its digest or by the word with which vendors end theirs."""
    parts = value.split(".")
    samples = (value, parts[1]) if len(parts) in (2, 3) else (value,)
    return _EXAMPLE.search(value) is not None or any(_digest(each.rstrip("=")) in _DIGESTS for each in samples)


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:_NUM_DIGITS]
