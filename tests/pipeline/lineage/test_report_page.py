"""The page of a report is always the same, loads nothing, and escapes the text of the corpus."""

import re
from html.parser import HTMLParser

from pipeline.lineage.report import Report, report_corpus
from pipeline.lineage.report_page import family, render_page
from pipeline.store.store import Store
from tests.pipeline.conftest import ADDRESS, HOSTILE


class Page(HTMLParser):
    """Tags with their attributes, and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_same_store_gives_the_same_page(tiny_store: Store, tiny: Report) -> None:
    assert render_page(report_corpus(tiny_store, "tiny")) == render_page(tiny)


def test_what_stands_in_another_file_is_a_copy_and_of_copyleft_text_a_matter_of_its_license() -> None:
    assert {family(reason) for reason in ("exact_duplicate", "near_duplicate", "contained", "container")} == {
        "duplicate"
    }
    assert (family("copyleft_copy"), family("generated"), family("kept")) == ("license", "filter", "kept")


def test_the_page_loads_nothing_from_elsewhere(tiny: Report) -> None:
    text = render_page(tiny)
    page = Page(text)
    places = [
        value or "" for _, attributes in page.tags for name, value in attributes.items() if name in ("src", "href")
    ]
    assert all(place.startswith("#") for place in places)
    assert not {"link", "iframe", "object", "embed", "image"} & {tag for tag, _ in page.tags}
    assert re.search(r"@import|url\((?!#)", text) is None
    assert '<p class="soft" id="none" hidden>' in text, "a search that finds nothing says so"


def test_a_search_finds_files_that_are_kept_as_those_that_are_dropped(tiny: Report) -> None:
    listed = {f"{row['source']}/{path}": row["outcome"] for row in tiny.files for path in row["paths"]}
    assert len(listed) == tiny.stages[0]["rows_in"] - tiny.stages[0]["num_evidence_files"], "every file once"
    assert (listed["lantern/include/lantern/log.hpp"], listed["odds/data/scanner.c"]) == ("kept", "generated")
    assert '"include/lantern/log.hpp"' in render_page(tiny)


def test_text_and_names_of_the_corpus_are_escaped(hostile: Report) -> None:
    page = Page(render_page(hostile))
    assert HOSTILE in page.text
    assert "<script>x<b>.c" in page.text
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert not {"img", "b"} & {tag for tag, attributes in page.tags if "onerror" in attributes or tag == "img"}


def test_a_sample_shows_no_address_of_a_person(hostile: Report) -> None:
    text = render_page(hostile)
    assert ADDRESS not in text
    assert "redacted-email-1" in text
