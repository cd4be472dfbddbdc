"""Login calls: functions of known libraries that get a password among their arguments, without a word of it in their names.

To add one, add its name to _FUNCTIONS.

Sources: the manuals of Arduino, libpq, MySQL, SQLite's encryption, OpenSSL, WinINet and Windows networking.
"""

import re
from collections.abc import Iterator

from pipeline.stages.normalize.scrub.credentials.password_values import looks_fair, looks_like_password
from pipeline.stages.normalize.scrub.finding import Finding
from pipeline.stages.normalize.scrub.hits import condition, hit_lines

_FUNCTIONS = (
    r"wifi(?:multi)?\.(?:begin|addap|softap)|pqsetdblogin|mysql_(?:real_)?connect|mysql_change_user|sqlite3_(?:re)?key(?:_v2)?|pkcs12_(?:parse|create)"
    r"|[a-z_]*passwd_cb_userdata|set_basic_auth|logonuser[aw]?|wnetaddconnection[23]?[aw]?|internetconnect[aw]?|pem_read_[a-z_]*privatekey"
)
_CALL = re.compile(rf"(?i)(?<![\w])(?:{_FUNCTIONS})\s?\(")
_LITERAL = re.compile(r"""(?P<arguments>[^"';{}]{0,120})L?"(?P<value>[^"\\\n]{0,200})\"""")
_MAX_ARGUMENTS = 8
_MIN_LENGTH = 6


def find_login_passwords(text: str) -> Iterator[Finding]:
    """Yield the arguments of logins that look like passwords."""
    for start, end in hit_lines(text, condition(rf"(?i:{_FUNCTIONS})\s?\(")):
        for call in _CALL.finditer(text, start, end):
            position = call.end()
            for _ in range(_MAX_ARGUMENTS):
                literal = _LITERAL.match(text, position)
                if literal is None:
                    break
                value, position = literal["value"], literal.end()
                if len(value) >= _MIN_LENGTH and (looks_fair(value) or looks_like_password(value)):
                    yield Finding(*literal.span("value"), value)
