"""Command lines: where the password stands on the lines that start programs, by their options.

To add a program, add an expression of what stands before the password to _BEFORE_PASSWORD, and its name to COMMAND_CONDITION.

Sources: the manuals of curl, OpenSSL, MySQL, Redis, OpenLDAP, Samba, Docker, Info-ZIP, SQL*Plus and FreeRDP.
"""

import re

COMMAND_CONDITION = (
    r"(?i:sshpass|curl|wget|mysql|mysqldump|mysqladmin|mariadb|redis-cli|ldap[a-z]*|smbclient|docker|podman|htpasswd|sudo|openssl|zip|unzip"
    r"|7z|psql|sqlplus|mongo|mongosh|mongodump|influx|az|svn|rsync|plink|pscp|winexe|net|gpg|rpcclient|xfreerdp|http|rabbitmqadmin)"
    r"\b[^\n]{0,200}[ \t=]-{1,2}[A-Za-z]|(?:^|[ \t])(?:-u|--user|--proxy-user)[ \t=]|(?i:\bsqlplus|\becho|\bnet[ \t]+use|/p:"
    r"|pass(?:in|out)?[ \t]+pass:)"
)
"""Expression that is true of every line with such a password."""

_SECRET = r"""[^\s"'`<>;\\]"""
_PASSWORD = rf"""\\?["']?(?P<value>{_SECRET}{{4,200}}?)(?=:?(?:[\s"'`<>;\\]|\Z))"""
_BEFORE_PASSWORD = (
    r"sshpass[ \t]+-p[ \t]*",
    r"(?:curl|http|wget)\b[^\n]{0,300}?[ \t](?:-u|--user|-a|--auth|--proxy-user|-U)[ \t=]*\\?[\"']?[^\s:\"']{0,80}:",
    r"(?:curl|wget)\b[^\n]{0,300}?[ \t](?:-u|--user)[ \t=]*\\?[\"']?(?=[^\s:\"']{8,80}:[\"'\\])",
    r"(?:^|\\n)[ \t/*#]{0,20}(?:-u|--user)[ \t=]+\\?[\"']?[^\s:\"']{0,80}:",
    r"(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n]{0,200}?[ \t]-p",
    r"(?:docker|podman|az|mongo|mongosh|mongodump|influx|svn|plink|pscp|rabbitmqadmin)\b[^\n]{0,200}?[ \t](?:-p|-pw)[ \t]+",
    r"redis-cli\b[^\n]{0,200}?[ \t]-a[ \t]+",
    r"ldap(?:search|modify|add|delete|passwd|whoami)\b[^\n]{0,200}?[ \t]-w[ \t]+",
    r"(?:smbclient|rpcclient|winexe)\b[^\n]{0,200}?[ \t]-U[ \t]*\\?[\"']?[^\s%\"']{1,80}%",
    r"(?:zip|unzip)\b[^\n]{0,80}?[ \t]-P[ \t]+",
    r"7z\b[^\n]{0,80}?[ \t]-p",
    r"-?pass(?:in|out)?[ \t]+pass:",
    r"openssl\b[^\n]{0,200}?[ \t]-k[ \t]+",
    r"htpasswd[ \t]{1,8}-\w{0,8}b\w{0,8}[ \t]{1,8}\S{1,200}[ \t]{1,8}\S{1,100}[ \t]{1,8}",
    r"sqlplus[ \t]+[^\s/\"']{1,60}/",
    r"echo[ \t]+(?=[^\n|]{1,200}\|[ \t]*(?:sudo[ \t]+-S|docker[ \t]+login|passwd))",
    r"net[ \t]+use\b[^\n]{0,120}?[ \t](?=[^\s]{1,200}[ \t]+/user:)",
    r"xfreerdp\b[^\n]{0,200}?[ \t]/p:",
)
PASSWORD_ARGUMENTS = tuple(
    re.compile(rf"(?im){before}{_PASSWORD}" if before.startswith("(?:^") else rf"(?i)\b{before}{_PASSWORD}")
    for before in _BEFORE_PASSWORD
)
"""Expressions of the lines, with the password as `value`."""
