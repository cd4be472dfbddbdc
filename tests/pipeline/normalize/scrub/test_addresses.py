"""E-mail and network addresses and home folders: where each begins and ends."""

import pytest

from pipeline.normalize.scrub.addresses import find_emails, find_local_paths, find_network_addresses

AT = "@"

EMAILS = {
    f"<a.b+c{AT}mail.host.co.uk>": [f"a.b+c{AT}mail.host.co.uk"],
    f"see x{AT}host.org.": [f"x{AT}host.org"],
    f"x{AT}host.org,y{AT}host.org": [f"x{AT}host.org", f"y{AT}host.org"],
    f"git{AT}github.com:a/b.git": [f"git{AT}github.com"],
    f"x{AT}host": [],
    f"{AT}param name.x": [],
    f"memcpy{AT}GLIBC_2.2.5": [],
    f"x{AT}example.com": [],
    f"x{AT}counterexample.com": [f"x{AT}counterexample.com"],
    f"{AT}host.org": [],
    f"jürgen{AT}müller.de": [f"jürgen{AT}müller.de"],
    f"邮箱x{AT}host.org请": [f"x{AT}host.org"],
}

ADDRESSES = {
    "8.8.8.8": ["8.8.8.8"],
    "http://93.184.216.34:80/": ["93.184.216.34"],
    "2606:4700::1111": ["2606:4700::1111"],
    "[2606:4700::1111]:443": ["2606:4700::1111"],
    "256.1.1.1": [],
    "1.2.3": [],
    "1.2.3.4.5": [],
    "v1.2.3.4": [],
    "version: 10.20.30.40": [],
    "2001:db8::7": [],
    "100.64.0.1": [],
    "224.0.0.1 x": ["224.0.0.1"],
    "a::b::c": [],
    "2606:4700::11111": [],
    "3f:2a": [],
}

PATHS = {
    "/home/ada/x": ["/home/ada/"],
    "/Users/ada.l/x": ["/Users/ada.l/"],
    "/home/ada": ["/home/ada"],
    "/home/ada|x": [],
    "/var/home/ada/x": ["/var/home/ada/"],
    "/mnt/c/Users/ada/x": ["/mnt/c/Users/ada/"],
    r"c:\users\ada\x": ["c:\\users\\ada\\"],
    "/api/home/ada/x": [],
    '"/home/ada"': ["/home/ada"],
    "/home/": [],
    "~/home/ada/x": [],
    r"C:\Users\ada\x": ["C:\\Users\\ada\\"],
    "d:/Users/ada/x": ["d:/Users/ada/"],
    r"C:\\Documents and Settings\\ada\\x": [r"C:\\Documents and Settings\\ada" + "\\\\"],
    r"C:\Windows\x": [],
}


@pytest.mark.parametrize(("text", "found"), EMAILS.items())
def test_e_mail_addresses_are_found_whole(text: str, found: list[str]) -> None:
    assert [text[each.start : each.end] for each in find_emails(text)] == found


@pytest.mark.parametrize(("text", "found"), ADDRESSES.items())
def test_network_addresses_are_found_whole(text: str, found: list[str]) -> None:
    assert [text[each.start : each.end] for each in find_network_addresses(text)] == found


@pytest.mark.parametrize(("text", "found"), PATHS.items())
def test_home_folders_are_found_with_their_separator(text: str, found: list[str]) -> None:
    assert [text[each.start : each.end] for each in find_local_paths(text)] == found


def test_two_spellings_of_one_address_are_one_value() -> None:
    text = "2606:4700:0:0::1111 2606:4700::1111"
    assert len({each.value for each in find_network_addresses(text)}) == 1


def test_a_finding_does_not_print_its_value() -> None:
    (found,) = find_emails(f"ada{AT}host.org")
    assert "ada" not in repr(found)
