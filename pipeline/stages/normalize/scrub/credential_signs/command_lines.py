"""Command lines: where the password is on the lines that start programs, by their options, and in commands of protocols.

To add a program, add an expression of what is before the password to _BEFORE_PASSWORD, and its name to COMMAND_CONDITION.

Sources: the manuals of curl, OpenSSL, MySQL, Redis, OpenLDAP, Samba, Docker, Info-ZIP, SQL*Plus and FreeRDP.
"""

import re

COMMAND_CONDITION = (
    r"(?i:sshpass|curl|wget|mysql|mysqldump|mysqladmin|mariadb|redis-cli|ldap[a-z]*|smbclient|docker|podman"
    r"|htpasswd|sudo|openssl|zip|unzip"
    r"|isql|osql|sqlcmd|bcp|tsql|ipmitool|mosquitto_[a-z]{3}|psexec|rdesktop|vncviewer|lftp|ncftp|(?:un)?rar|7za|ssh-keygen|snmp[a-z]+|pdftk|nmcli|wpa_passphrase"
    r"|7z|psql|sqlplus|mongo|mongosh|mongodump|influx|az|svn|rsync|plink|pscp|winexe|net|gpg|rpcclient|xfreerdp|http|rabbitmqadmin)"
    r"\b[^\n]{0,200}[ \t=]-{1,2}[A-Za-z]|(?:^|[ \t])(?:-u|--user|--proxy-user)[ \t=]|(?i:\bsqlplus|\becho|\bnmcli[ \t]"
    r"|\bnet[ \t]+use|/p:|(?:mysql|mariadb)[a-z]{0,8}\"[^\n]{0,200}\"-p"
    r"|pass(?:in|out)?[ \t]+pass:)"
)
"""Expression that is true of every line with such a password."""

_SECRET = r"""[^\s"'`<>;\\]"""
_PASSWORD = rf"""\\?["']?(?P<value>{_SECRET}{{4,200}}?)(?=:?(?:[\s"'`<>;\\]|\Z))"""
_BEFORE_PASSWORD = (
    r"sshpass[ \t]+-p[ \t]*",
    r"(?:curl|http|wget)\b[^\n]{0,300}?[ \t](?:-u|--user|-a|--auth|--proxy-user|-U)[ \t=]*\\?[\"']?[^\s:\"']{0,80}:",
    r"(?:curl|wget)\b[^\n]{0,300}?[ \t](?:-u|--user)[ \t=]*\\?[\"']?(?=[^\s:\"']{8,80}:[\"'\\])",
    r"(?:^|\\n|\n)[ \t/*#]{0,20}(?:-u|--user)[ \t=]+\\?[\"']?[^\s:\"']{0,80}:",
    r"(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n]{0,200}?[ \t]-p",
    r"(?:mysql|mysqldump|mysqladmin|mariadb)\"(?:\s{0,4},\s{0,40}\"[^\"\n]{0,80}\"){0,8}\s{0,4},\s{0,40}\"(?-i:-p)(?=[^\"])",
    r"(?:docker|podman|az|mongo|mongosh|mongodump|influx|svn|plink|pscp|rabbitmqadmin)\b[^\n]{0,200}?[ \t](?:-p|-pw)[ \t]+",
    r"(?:psexec|rdesktop|ncftp)\b[^\n]{0,200}?[ \t]-p[ \t]+",
    r"(?:isql|osql|sqlcmd|bcp|tsql|ipmitool|mosquitto_[a-z]{3})\b[^\n]{0,200}?[ \t]-P[ \t]*",
    r"lftp\b[^\n]{0,120}?[ \t]-u[ \t]+[^\s,\"']{1,60},",
    r"ssh-keygen\b[^\n]{0,120}?[ \t]-[NP][ \t]+",
    r"snmp[a-z]{2,12}\b[^\n]{0,200}?[ \t]-[AX][ \t]+",
    r"nmcli\b[^\n]{0,200}?[ \t]password[ \t]+",
    r"redis-cli\b[^\n]{0,200}?[ \t]-a[ \t]+",
    r"ldap(?:search|modify|add|delete|passwd|whoami)\b[^\n]{0,200}?[ \t]-w[ \t]+",
    r"(?:smbclient|rpcclient|winexe)\b[^\n]{0,200}?[ \t]-U[ \t]*\\?[\"']?[^\s%\"']{1,80}%",
    r"(?:zip|unzip)\b[^\n]{0,80}?[ \t]-P[ \t]+",
    r"(?:7za?|(?:un)?rar)\b[^\n]{0,80}?[ \t]-p",
    r"-?pass(?:in|out)?[ \t]+pass:",
    r"openssl\b[^\n]{0,200}?[ \t]-k[ \t]+",
    r"htpasswd[ \t]{1,8}-\w{0,8}b\w{0,8}[ \t]{1,8}\S{1,200}[ \t]{1,8}\S{1,100}[ \t]{1,8}",
    r"sqlplus[ \t]+[^\s/\"']{1,60}/",
    r"echo[ \t]+(?=[^\n|]{1,200}\|[ \t]*(?:sudo[ \t]+-S|docker[ \t]+login|passwd))",
    r"echo[ \t]+\\?[\"']?[\w.-]{1,40}:(?=[^\n|]{1,200}\|[ \t]*(?:sudo[ \t]+)?chpasswd)",
    r"net[ \t]+user[ \t]+[\w.-]{1,40}[ \t]+(?=\S{1,200}[ \t]+/add)",
    r"net[ \t]+use\b[^\n]{0,120}?/user:\S{1,60}[ \t]+",
    r"smbclient[ \t]+\S{1,120}[ \t]+(?=[^\s-]\S{1,120}[ \t]+-U)",
    r"net[ \t]+use\b[^\n]{0,120}?[ \t](?=[^\s]{1,200}[ \t]+/user:)",
    r"xfreerdp\b[^\n]{0,200}?[ \t]/p:",
)
PROTOCOL_CONDITION = (
    r"\b(?:AUTH|PASS|LOGIN)[ ]|(?i:\"(?:AUTH|PASS)[ ]|\b(?:IDENTIFY|requirepass|masterauth|PRAGMA|community)[ ]"
    r"|\bPASSWORD(?:[ ]FOR[ ]\S+)?[ ]?=?[ ]?\\?')"
)
"""Expression that is true of every line with a command of a protocol or of a database that holds a password."""
_LINE_END = r"[ ][\r\n]"
"""An escaped end of a line, as lines are searched."""
_IN_COMMAND = r"""[^\s"'`<>;\\%]"""
PROTOCOL_PASSWORDS = tuple(
    re.compile(rf"{before}(?P<value>{_IN_COMMAND}{{4,200}}){after}")
    for before, after in (
        (r"(?i)redis[^\n]{0,80}\"AUTH[ ](?:\w{1,40}[ ])?", rf"(?=\"|{_LINE_END})"),
        (r"(?<![\w-])(?:AUTH|PASS)[ ]", rf"(?={_LINE_END})"),
        (
            r"(?i)(?:write|send|cmd|command|ftp|pop3?|irc|socket|sock)\w{0,20}[ ]?[(<][^\n]{0,60}\"PASS[ ]",
            rf"(?=\"|\\|{_LINE_END})",
        ),
        (r"(?<![\w-])\w{1,8}[ ]LOGIN[ ]\\?\"?[\w.@+-]{1,60}\\?\"?[ ]\\?\"?", rf"(?=\\|\"|{_LINE_END})"),
        (r"(?i)(?:NickServ\b[^\n]{0,12}|\bNS[ ])IDENTIFY[ ](?:\w{1,30}[ ])?", rf"(?=\\|\"|{_LINE_END})"),
        (r"(?i)\bPASSWORD(?:[ ]FOR[ ]\S{1,60})?[ ]?=?[ ]?\\?'", r"(?=\\?')"),
        (r"(?i)\bPRAGMA[ ](?:re)?key[ ]?=[ ]?\\?['\"]", r"(?=\\?['\"])"),
        (r"(?i)\b(?:requirepass|masterauth|snmp-server[ ]community)[ ]", r"(?=[\s\"\\]|\Z)"),
    )
)
"""Expressions of commands of Redis, POP, FTP, IRC, IMAP and SQL, with the password as `value`."""
IDENTIFIED_BY = re.compile(
    rf"(?i)\bIDENTIFIED[ ](?:WITH[ ]\w{{1,40}}[ ])?BY[ ](?:PASSWORD[ ])?\\?[\"']?(?P<value>{_IN_COMMAND}{{4,200}})(?=\\?[\"';])"
)
"""The clause of SQL, which nothing else looks like."""
PLAIN_LOGIN = re.compile(
    r"""(?i)\bAUTH[ ](?:PLAIN|LOGIN)[\s"'<+,;(]{1,12}(?:std::string\()?(?P<value>[A-Za-z0-9+/]{8,400}={0,2})"""
)
"""A login of SMTP: base64 with NUL between user and password, or without."""
PASSWORD_ARGUMENTS = tuple(
    re.compile(rf"(?im){before}{_PASSWORD}" if before.startswith("(?:^") else rf"(?i)\b{before}{_PASSWORD}")
    for before in _BEFORE_PASSWORD
)
"""Expressions of the lines, with the password as `value`."""
