"""E-mail addresses: where each begins and ends."""

import pytest

from pipeline.stages.normalize.scrub.addresses.emails import find_emails, find_written_out_emails

AT = "@"

EMAILS = {
    f"<a.b+c{AT}mail.host.co.uk>": [f"a.b+c{AT}mail.host.co.uk"],
    f"see x{AT}host.org.": [f"x{AT}host.org"],
    f"x{AT}host.org,y{AT}host.org": [f"x{AT}host.org", f"y{AT}host.org"],
    f"git{AT}github.com:a/b.git": [],
    f"x{AT}host": [],
    f"https://lore.kernel.org/all/cb912694-b1fe-dbb0-4d8c-d608f3526905{AT}gmx.de/": [],
    f"ada {AT} host . org": [f"ada {AT} host . org"],
    "ada_AT_host_DOT_org": ["ada_AT_host_DOT_org"],
    "/* maintainer: k.tanaka at lab.u-tokyo.ac.jp */": ["k.tanaka at lab.u-tokyo.ac.jp"],
    "// mail boost.asio at github.com/x": [],
    "mlee_AT_host.edu, FOO_AT_bar.com": ["mlee_AT_host.edu"],
    "jane _at_ host.org": ["jane _at_ host.org"],
    "ada at host dot org, ada at mail dot host dot de": ["ada at host dot org", "ada at mail dot host dot de"],
    "// evaluate at point dot normal": [],
    "// sample at surface dot light, look at line dot product": [],
    "// gradient at x dot direction, arrive at node dot id": [],
    f"https://${{USER}}:${{TOKEN}}{AT}github.com/x": [],
    f"root{AT}localhost.localdomain": [],
    f"curve25519-sha256{AT}openssh.com": [],
    f"rijndael-cbc{AT}lysator.liu.se umac-64{AT}acme.com chacha20-poly1305{AT}host.org": [],
    f"ed-k{AT}lysator.liu.se": [f"ed-k{AT}lysator.liu.se"],
    f"keepalive{AT}libssh2.org": [],
    f"noreply{AT}github.com do-not-reply{AT}host.org": [],
    rf'"\x15keep{AT}host.org"': [f"keep{AT}host.org"],
    rf'"\x1bbob{AT}host.org"': [f"ob{AT}host.org"],
    rf'"\033bob{AT}host.org \\bob{AT}host.org"': [f"bob{AT}host.org"] * 2,
    f"{AT}param name.x": [],
    f"memcpy{AT}GLIBC_2.2.5": [],
    f"x{AT}example.com": [],
    f"x{AT}test.com y{AT}mydomain.com": [],
    f"Score{AT}odata.type": [],
    f"x{AT}counterexample.com": [f"x{AT}counterexample.com"],
    f"{AT}host.org": [],
    f"jürgen{AT}müller.de": [f"jürgen{AT}müller.de"],
    f"邮箱x{AT}host.org请": [f"x{AT}host.org"],
}


@pytest.mark.parametrize(("text", "found"), EMAILS.items())
def test_e_mail_addresses_are_found_whole(text: str, found: list[str]) -> None:
    assert [text[each.start : each.end] for each in (*find_emails(text), *find_written_out_emails(text))] == found
