"""Measures of normalize for its gates: counts over what is about to be stored, searched again and not taken from the rules."""

from collections.abc import Sequence

from pipeline.core.languages import LANGUAGES, language_of
from pipeline.core.records import Document, DuplicateRecord, LicenseEvidence, Split
from pipeline.stages.normalize.contamination.decontaminate import WholeSolutions
from pipeline.stages.normalize.drop import Drop
from pipeline.stages.normalize.duplicates.duplicates import ComparedDocument, Reason
from pipeline.stages.normalize.license.policy import LicenseClass, Policy, classify_expression
from pipeline.stages.normalize.scrub.scrub import Scrubber


def cleaned_measures(
    documents: Sequence[Document], policy: Policy, scrubber: Scrubber, solutions: WholeSolutions
) -> dict[str, float]:
    """Return the measures of the documents that one source's rules keep."""
    return {
        "num_cleaned_documents": len(documents),
        "num_contaminated_left": sum(solutions.holds(document.text) for document in documents),
        "num_redactions": sum(document.num_redactions for document in documents),
        "num_unlicensed_kept": sum(not is_licensed(document, policy) for document in documents),
        "num_unwaived_secrets": sum(scrubber.scan(document.path, document.text) for document in documents),
        **_bytes_by_language(documents),
    }


def redaction_measure(placeholder: str) -> str:
    """Return the name of the measure that counts the redactions of a detector."""
    return f"num_redactions_{placeholder.replace('-', '_')}"


def compared_measures(kept: Sequence[ComparedDocument], dropped: Sequence[DuplicateRecord]) -> dict[str, float]:
    """Return the measures of all sources' documents once duplicates are dropped."""
    num_dropped = {reason: sum(record.reason == reason for record in dropped) for reason in Reason}
    return {
        "num_bytes_kept": sum(document.num_bytes for document in kept),
        "num_copyleft_copies": num_dropped[Reason.COPYLEFT_COPY],
        "num_documents": len(kept),
        "num_exact_duplicates": num_dropped[Reason.EXACT_DUPLICATE],
        "num_exact_duplicates_left": len(kept) - len({document.text_sha256 for document in kept}),
        "num_held_out_documents": sum(document.split == Split.HELD_OUT for document in kept),
        "num_near_duplicates": num_dropped[Reason.NEAR_DUPLICATE],
    }


def is_licensed(document: Document, policy: Policy) -> bool:
    """Return whether the stored expression parses, is allowed or tagged, and has evidence."""
    found = classify_expression(document.license, policy)
    has_evidence = document.license_evidence != LicenseEvidence.NONE and bool(document.license_detail)
    return not isinstance(found, Drop) and found.license_class < LicenseClass.REFUSED and has_evidence


def _bytes_by_language(documents: Sequence[Document]) -> dict[str, float]:
    num_bytes = dict.fromkeys(LANGUAGES.names, 0)
    for document in documents:
        if (language := language_of(document.path)) is not None:
            num_bytes[language.name] += document.num_bytes
    return {f"num_bytes_cleaned_{language}": number for language, number in num_bytes.items()}
