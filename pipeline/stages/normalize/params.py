"""Params of normalize: limits of filters, license evidence, detectors, duplicates, decontamination, bands of drops."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from pipeline.core.params import Params
from pipeline.core.settings.fields import RELATIVE_PATH

_VENDORED_NAMES = """
    3rd_party 3rdparty _vendor dependencies deps ext ext_libs extern external external_libs externals externs
    subprojects third-party third_party thirdparty vendor vendored
"""
VENDORED_ROOTS = tuple(_VENDORED_NAMES.split())


class FilterParams(Params):
    """Limits of the filters.

    Lengths count bytes of UTF-8. Defaults follow bigcode and OpenCoder, except those that drop good headers.
    """

    min_num_bytes: int = Field(default=100, ge=0, le=1_000_000)
    """Smallest text in bytes."""
    max_num_bytes: int = Field(default=1_000_000, ge=1, le=1_000_000_000)
    """Largest text in bytes."""
    max_longest_line: int = Field(default=1_000, ge=1, le=1_000_000_000)
    """Bytes of the longest line."""
    max_mean_line: float = Field(default=100.0, gt=0, le=1_000_000_000)
    """Mean bytes of a line."""
    min_alphanumeric_fraction: float = Field(default=0.25, ge=0, le=1)
    """Letters and digits among all bytes that are no blanks."""
    min_unique_line_fraction: float = Field(default=0.2, ge=0, le=1)
    """Distinct lines among the lines of more than two characters; unrolled code and tests by hand have down to 0.2."""
    max_comment_fraction: float = Field(default=0.9, ge=0, le=1)
    """Comment bytes among all that are not blank, the license header left out; documented declarations have up to 0.87."""
    max_generated_markers: int = Field(default=0, ge=0, le=1_000)
    """File names, claims and other signs of a program's output."""
    max_amalgamation_markers: int = Field(default=0, ge=0, le=1_000)
    """Claims that the file was joined from others."""
    max_encoded_run: int = Field(default=1_024, ge=64, le=1_000_000_000)
    """Characters of the longest run of base64 or hexadecimal text, string literals on following lines joined."""
    max_objective_c_lines: int = Field(default=0, ge=0, le=1_000)
    """Lines that only Objective-C has."""
    max_foreign_line_fraction: float = Field(default=0.12, ge=0, le=1)
    """Lines that no C or C++ has, among all that are no directives."""
    max_numeric_fraction: float = Field(default=0.92, ge=0, le=1)
    """Bytes of tables of numbers among those of all tokens: a table with an algorithm around it stays."""
    max_string_fraction: float = Field(default=0.92, ge=0, le=1)
    """Bytes of strings among those of all tokens."""
    max_table_fraction: float = Field(default=0.92, ge=0, le=1)
    """Bytes of tables of any kind among those of all tokens."""

    @model_validator(mode="after")
    def _keep_a_size(self) -> Self:
        smallest, largest = self.min_num_bytes, self.max_num_bytes
        if smallest > largest:
            raise ValueError(f"min_num_bytes: {smallest:,} is above max_num_bytes {largest:,}: no text is kept")
        return self


class EvidencePolicy(StrEnum):
    """Evidence of a license that counts."""

    INHERITED = "inherited"
    FILE = "file"


class LicenseParams(Params):
    """Settings of the license rule. The class of each license is in `license_policy.toml`, pinned by its digest."""

    license_evidence: EvidencePolicy = EvidencePolicy.INHERITED
    """`file` refuses every license that is not stated for the file itself (in it, beside it, or by REUSE or DEP-5)."""
    keep_tagged: bool = True
    """Keep weak copyleft, with its class on every document."""
    vendored_roots: tuple[str, ...] = VENDORED_ROOTS
    """Names of folders at which inheritance stops, in lower case."""


class ScrubParams(Params):
    """Switches of the detectors. Secrets are always replaced."""

    redact_emails: bool = True
    """Replace e-mail addresses."""
    redact_network_addresses: bool = True
    """Replace public IPv4 and IPv6 addresses."""
    redact_local_paths: bool = True
    """Replace home folders of a machine's users."""
    redact_author_names: bool = False
    """Replace names of people in notices of copyright and authorship, license headers included: most licenses ask to keep them."""
    keep_addresses_in_license_header: bool = True
    """Keep e-mail and network addresses in the license header: attribution is a condition of most licenses. Changes have none."""


LIKE_SIZES = 1.5
"""Ratio of sizes below which two documents are siblings rather than a part and its container."""


class DuplicateParams(Params):
    """Limits from which texts are duplicates. Jaccard similarities are exact, over sets of five-token shingles.

    The signature (256 permutations, 42 bands of 6 rows, datasketch's `affine32`) is fixed: stored signatures must
    stay comparable.
    """

    min_jaccard_between_sources: float = Field(default=0.7, gt=0, le=1)
    """Similarity from which a file is a copy of one of another source, or of the other split."""
    min_jaccard_inside_source: float = Field(default=0.9, gt=0, le=1)
    """The same inside one source and one split, where less similar files are siblings by design."""
    min_containment: float = Field(default=0.8, gt=0.5, le=1)
    """Share of a document's shingles from which it is contained in another, or covered by others."""
    min_num_contained: int = Field(default=50, ge=1, le=100_000)
    """Texts with fewer shingles, include directives left out, are contained in none: they are declarations that many files make."""
    max_num_sharing: int = Field(default=100, ge=2, le=10_000)
    """Shingles of more documents are boilerplate: no evidence that one contains another."""
    min_num_tokens: int = Field(default=30, ge=5, le=100_000)
    """Texts with fewer tokens are only compared for equality."""
    permutation_seed: int = Field(default=1, ge=0, le=2**32 - 1)
    """Seed of the permutations, as in `datasketch.MinHash(seed=...)`."""

    def min_jaccard(self, are_siblings: bool) -> float:
        """Return the similarity from which two files are copies: siblings are of one source and one split."""
        return self.min_jaccard_inside_source if are_siblings else self.min_jaccard_between_sources

    def containment_limit(self, are_siblings: bool, ratio: float) -> float:
        """Return the share from which a document is contained in one of `ratio` times its size.

        Between documents of like sizes it is what the limit of their Jaccard similarity means: siblings stay siblings.
        """
        jaccard = self.min_jaccard(are_siblings)
        return max(self.min_containment, 2 * jaccard / (1 + jaccard)) if ratio < LIKE_SIZES else self.min_containment


class DecontaminationRules(Params):
    """Limits from which a document holds an evaluation item's solution."""

    min_overlap: float = Field(default=0.5, gt=0, le=1)
    """Share of a solution's runs of 13 tokens from which a document is contaminated."""
    min_jaccard: float = Field(default=0.7, ge=0.2, le=1)
    """Similarity of a whole document to a solution from which it is contaminated."""
    min_solution_tokens: int = Field(default=30, ge=13, le=100_000)
    """Items with shorter solutions are refused."""


class DecontaminationParams(DecontaminationRules):
    """Evaluation items that documents are compared with, in addition to the shipped ones."""

    items_folder: Annotated[str | None, RELATIVE_PATH] = Field(default=None, exclude=True)
    """A folder of JSONL files with items. Its content enters identities, its path does not."""

    def rules(self) -> DecontaminationRules:
        """Return the fields that one source's cleaned part depends on."""
        return DecontaminationRules(**{name: getattr(self, name) for name in DecontaminationRules.model_fields})


class DropBands(Params):
    """Largest share of the collected files that each drop reason may have. The defaults only catch a broken rule."""

    binary: float = Field(default=0.2, ge=0, le=1)
    """Files with NUL bytes or control characters."""
    undecodable: float = Field(default=0.1, ge=0, le=1)
    """Files that no likely encoding decodes."""
    too_small: float = Field(default=0.5, ge=0, le=1)
    """Texts of fewer than `min_num_bytes` bytes."""
    too_large: float = Field(default=0.3, ge=0, le=1)
    """Texts of more than `max_num_bytes` bytes."""
    long_line: float = Field(default=0.3, ge=0, le=1)
    """Texts with a line longer than `max_longest_line`."""
    long_mean_line: float = Field(default=0.2, ge=0, le=1)
    """Texts whose mean line is longer than `max_mean_line`."""
    few_alphanumerics: float = Field(default=0.2, ge=0, le=1)
    """Texts with few letters and digits, such as tables of punctuation."""
    repeated_lines: float = Field(default=0.3, ge=0, le=1)
    """Texts of which most lines are copies of others."""
    mostly_comments: float = Field(default=0.5, ge=0, le=1)
    """Texts of which nearly all is comments."""
    generated: float = Field(default=0.5, ge=0, le=1)
    """Output of a program, by its name, a claim in its leading comments or what only one program writes."""
    amalgamation: float = Field(default=0.2, ge=0, le=1)
    """Files into which others were joined."""
    encoded_data: float = Field(default=0.2, ge=0, le=1)
    """Texts with a long run of base64 or hexadecimal digits."""
    objective_c: float = Field(default=0.5, ge=0, le=1)
    """Headers of Objective-C."""
    foreign_language: float = Field(default=0.2, ge=0, le=1)
    """Texts in another language than their suffix says."""
    numeric_data: float = Field(default=0.2, ge=0, le=1)
    """Texts that are tables of numbers."""
    string_data: float = Field(default=0.2, ge=0, le=1)
    """Texts that are data, or texts in another language, in strings."""
    tabular: float = Field(default=0.2, ge=0, le=1)
    """Texts that are rows of one shape."""
    license_refused: float = Field(default=0.95, ge=0, le=1)
    """Files under a license that the policy does not allow."""
    license_unknown: float = Field(default=0.5, ge=0, le=1)
    """Files with a license expression that does not parse."""
    license_quarantined: float = Field(default=0.95, ge=0, le=1)
    """Files whose license evidence is unclear."""
    unscrubbable: float = Field(default=0.01, ge=0, le=1)
    """Texts with a finding that scrubbing did not remove, and files whose path holds a secret or an e-mail address."""
    contaminated: float = Field(default=0.05, ge=0, le=1)
    """Texts that hold the solution of an evaluation item."""
    exact_duplicate: float = Field(default=0.9, ge=0, le=1)
    """Copies of equal texts."""
    near_duplicate: float = Field(default=0.9, ge=0, le=1)
    """Copies of similar texts."""
    copyleft_copy: float = Field(default=0.5, ge=0, le=1)
    """Copies of texts that another file puts under copyleft."""
    contained: float = Field(default=0.5, ge=0, le=1)
    """Texts that a larger one contains."""
    container: float = Field(default=0.5, ge=0, le=1)
    """Texts that several others make up."""


class NormalizeParams(Params):
    """Params of stage normalize."""

    filters: FilterParams = FilterParams()
    """Limits of the filters."""
    licenses: LicenseParams = LicenseParams()
    """The license rule."""
    scrub: ScrubParams = ScrubParams()
    """Switches of the detectors."""
    duplicates: DuplicateParams = DuplicateParams()
    """Exact and near-duplicates."""
    decontamination: DecontaminationParams = DecontaminationParams()
    """Solutions of evaluation items."""
    drop_bands: DropBands = DropBands()
    """Largest share of each drop reason."""
    max_redacted_fraction: float = Field(default=0.02, ge=0, lt=1)
    """Share of the bytes of a source that may be replaced by placeholders before the stage is blocked."""


@dataclass(frozen=True)
class RulesIdentity:
    """The identity of a cleaned part besides its input and Params: split, declared license, policy, texts, evaluation items.

    `decisions` are those about the source, as JSON, with their words scrubbed. Without one they are not in the identity.
    `held_out` is the rule of single files as JSON, where there is one; `split` is that of all others. `changes` is true where
    changes of files are among the collected files.
    """

    split: str
    declared_license: str
    inherit_license: bool
    license_policy_sha256: str
    license_texts_digest: str
    evaluation_sha256: str
    detectors: tuple[str, ...]
    """The name and the version of each detector."""
    decisions: tuple[dict[str, Any], ...] = ()
    held_out: dict[str, Any] | None = None
    changes: bool = False


class RulesParams(Params):
    """The parameters that one source's cleaned part depends on; of duplicates only what its signatures need."""

    filters: FilterParams
    """Limits of the filters."""
    licenses: LicenseParams
    """The license rule."""
    scrub: ScrubParams
    """Switches of the detectors."""
    decontamination: DecontaminationRules
    """Solutions of evaluation items."""
    min_num_tokens: int = Field(ge=5, le=100_000)
    """Texts with fewer tokens get no signature."""
    permutation_seed: int = Field(ge=0, le=2**32 - 1)
    """Seed of the signatures' permutations."""
