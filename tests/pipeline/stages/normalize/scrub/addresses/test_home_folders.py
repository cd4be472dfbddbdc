"""Home folders of users: where each begins and ends."""

import pytest

from pipeline.stages.normalize.scrub.addresses.home_folders import find_home_folders

PATHS = {
    "/home/ada/x": ["/home/ada/"],
    "/Users/ada.l/x": ["/Users/ada.l/"],
    "/home/ada": ["/home/ada"],
    "/home/ada|x": [],
    "/var/home/ada/x": ["/var/home/ada/"],
    "/mnt/c/Users/ada/x": ["/mnt/c/Users/ada/"],
    r"c:\users\ada\x": ["c:\\users\\ada\\"],
    "/api/home/ada/x": [],
    "/ccs/home/ada/x": ["/ccs/home/ada/"],
    "/opt/users/ada/x": ["/opt/users/ada/"],
    "/global/homes/k/ada/x": ["/global/homes/k/ada/"],
    '"/home/pi"': [],
    "//files/home/ada/x": ["/files/home/ada/"],
    "/work/users/ada/x": ["/work/users/ada/"],
    "/usr/people/ada/x": ["/usr/people/ada/"],
    "/gscratch/ada/x": ["/gscratch/ada/"],
    "cd ~ada.l/src": ["~ada.l/"],
    "see /u/x": [],
    "/usr/home/ada/x": ["/usr/home/ada/"],
    "/usr/local/home/x": [],
    "/usr/share/home/ada/x": [],
    "/var/lib/home/ada/x": [],
    "/usr/locals/home/ada/x": ["/usr/locals/home/ada/"],
    "/home/users/ada/x": ["/home/users/ada/"],
    "/home/user/x": [],
    "/home/runner/x": [],
    "/afs/cell.org/u/ab/adal/x": ["/afs/cell.org/u/ab/adal/"],
    "cd ~ada/src": ["~ada/"],
    "x = ~ada/2": [],
    "GET /users/42/posts": [],
    '"/home/ada"': ["/home/ada"],
    "/home/": [],
    "~/home/ada/x": [],
    r"C:\Users\ada\x": ["C:\\Users\\ada\\"],
    "d:/Users/ada/x": ["d:/Users/ada/"],
    r"C:\\Documents and Settings\\ada\\x": [r"C:\\Documents and Settings\\ada" + "\\\\"],
    r"C:\Windows\x": [],
    r'"\"C:\\Users\\ada\""': [r"C:\\Users\\ada"],
    r'"C:\\Users\\ada\n"': [r"C:\\Users\\ada"],
    r'"C:\\Users\\ada\\\n"': [r"C:\\Users\\ada" + "\\\\"],
    r'"\\\\fs1\\users\\ada\n"': [r"\\\\fs1\\users\\ada"],
    "C:/Users/Ada Byron/x": ["C:/Users/Ada Byron/"],
    r"C:\Users\Ada Byron\x": ["C:\\Users\\Ada Byron\\"],
    r"C:\Users\All Users\x": [],
    "/Users/Ada Byron/x": ["/Users/Ada Byron/"],
    "/Users/Ada\\ Byron/x": ["/Users/Ada\\ Byron/"],
    "/Users/Ada%20Byron/x": ["/Users/Ada%20Byron/"],
    "/Users/Ada Lives here": ["/Users/Ada"],
    "/Users/Ada and/or": ["/Users/Ada"],
    "/home/müller/x": ["/home/müller/"],
    "/Users/bwójcik.x/src": ["/Users/bwójcik.x/"],
    '"/home/größe-x"': ["/home/größe-x"],
}


@pytest.mark.parametrize(("text", "found"), PATHS.items())
def test_home_folders_are_found_with_their_separator(text: str, found: list[str]) -> None:
    assert [text[each.start : each.end] for each in find_home_folders(text)] == found
