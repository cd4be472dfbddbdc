"""Private keys over lines: what belongs to the key and what is code."""

from pipeline.stages.normalize.scrub.secrets.private_keys import find_private_keys
from tests.support.planted_secrets import ALPHANUMERIC, characters, key_block


def stretches(text: str) -> list[str]:
    return [text[each.start : each.end] for each in find_private_keys(text)]


def test_markers_and_payload_are_found_and_margins_are_not() -> None:
    lines = key_block()
    text = "".join(f' * "{line}\\n"\n' for line in lines)
    assert stretches(text) == lines


def test_headers_of_an_encrypted_key_belong_to_it() -> None:
    lines = key_block()
    headers = ["Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,0011223344"]
    text = "\n".join([lines[0], *headers, "", *lines[1:]])
    assert stretches(text) == [lines[0], *headers, *lines[1:]]


def test_a_key_of_putty_is_found_up_to_its_mac() -> None:
    body = [characters(ALPHANUMERIC, 64, seed) for seed in range(3)]
    head = [f"PuTTY-User-Key{'-File-2'}: ssh-rsa", "Encryption: none", "Comment: work", "Private-Lines: 3"]
    tail = "Private-MAC: 0123456789abcdef"
    assert stretches("\n".join([*head, *body, tail, "int a;"])) == [*head, *body, tail]


def test_without_an_end_the_code_after_the_key_is_kept() -> None:
    lines = key_block()[:-1]
    assert stretches("\n".join([*lines, "", "return x;", "break"])) == lines


def test_a_marker_without_key_material_is_no_key() -> None:
    first, last = key_block()[0], key_block()[-1]
    assert stretches(f'find("{first}");\nfind("{last}");') == []
    assert stretches(f'static const char begin[] = "{first}";\nstatic const char endmarker[] = "{last}";') == []


def test_two_keys_have_two_values() -> None:
    first, second = key_block(num_lines=2), key_block(num_lines=3)
    found = list(find_private_keys("\n".join([*first, "int a;", *second])))
    assert len({each.value for each in found}) == 2
    assert len(found) == len(first) + len(second)


def test_signs_of_margins_without_an_end_cost_no_more_than_their_number() -> None:
    """Twenty-four opened literals took eight seconds, and each more twice as long, when a margin could give back what it took."""
    assert stretches("\n".join([key_block()[0], '("' * 4_000 + "!", "int a;"])) == []
