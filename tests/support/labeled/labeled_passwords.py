"""Labeled lines with passwords: in code, in the texts of literals and comments, on command lines and in configurations."""

import base64
import random
import string
from collections.abc import Iterator

from tests.support.labeled.labeled_secrets import LabeledLine

_WORDS_TEXT = """
    river copper lantern falcon maple winter orbit pepper canyon violet harbor tiger summit ginger
"""
_WORDS = _WORDS_TEXT.split()
_SIGNS = "!@#%?*"

GIVEN = r"""
    #define DB_PASSWORD "@"
    #define SMTP_PASSWD L"@"
    static const char kPassword[] = "@";
    std::string kPassword{"@"};
    const std::string kAdminPassword("@");
    constexpr std::string_view password = "@"sv;
    cfg.password = "@";
    options->db_password = "@";
    Config c{.user = "bob", .password = "@"};
    auto pwd = u8"@";
    char psw[32] = "@";
    if (pw == "@") return true;
    if ("@" == password) return true;
    wchar_t* contraseña = L"@";
    QString passwort = QStringLiteral("@");
    m["password"] = "@";
    std::string db_password =\n    "@";
    auto j = "{\"user\": \"bob\", \"password\": \"@\"}";
    auto j = R"({"password": "@", "port": 3})";
    auto cs = "Server=db;Database=x;User Id=sa;Password=@;";
    auto cs = "DRIVER={ODBC};UID=sa;PWD=@;";
    auto u = "postgres://bob:@@db.host.org/x";
    auto u = "amqp://bob:@@mq:5672/";
    auto u = "redis://:@@cache:6379/0";
    auto u = "jdbc:mysql://db/x?user=bob&password=@&ssl=1";
    auto u = "host=db user=bob password=@ dbname=x";
    static const std::string client_secret = "@";
    std::string api_key = {"@"};
    password = (mode == 1) ? "@" : fallback;
    <password>@</password>
    passphrase: "@"
    kSecret = "@";
"""
"""Lines where any value is a password, which stands for the sign at."""

PASSED = r"""
    conn->setPassword("@");
    options.set_password(std::string("@"));
    if (strcmp(password, "@") == 0) {}
    strncpy(user.passwd, "@", 32);
    setenv("PGPASSWORD", "@", 1);
    curl_easy_setopt(curl, CURLOPT_PASSWORD, "@");
    settings.insert({"db.password", "@"});
    std::map<std::string, std::string> m = {{"password", "@"}, {"user", "x"}};
    auto c = authenticate(session, password, "@");
    // password: @
    auto y = "password: @\n";
    // DB_PASSWORD=@
    // PGPASSWORD=@ psql -h db
    system("tool --password @ --verbose");
    system("tool --password=@ --verbose");
    auto u = "secret=@";
    // machine host.org login bob password @
    // db.host.org:5432:main:bob:@
    env["MYSQL_PWD"] = "@";
    *   passwd = @
    system("sshpass -p @ ssh bob@host");
    system("curl -u bob:@ https://host.org");
    system("mysql -u root -p@ main");
    system("docker login -u bob -p @ r.host.org");
    // redis-cli -a @ ping
"""
"""Lines where a value has digits, as passwords do."""

MIXED = r"""
    auto tok = "@";
    auto key = "@";
    const auto cred = "@";
    auto auth = "@";
    std::string pass("@");
    login("bob", "@");
    auto c = Credentials{"bob", "@"};
    mysql_real_connect(conn, "localhost", "root", "@", "main", 0, NULL, 0);
    wifi.connect(ssid, "@");
    { "auth": "@" }
    token: "@",
    session.start(key, "@");
"""
"""Lines with a short name, where a value is a password by its own look."""

NAMED = r"""
    // password: @
    // db_password: @
    /*\n * smtp:\n *   user: bot\n *   password: @\n */
    // export POSTGRES_PASSWORD=@
    // --db-password=@
    // pg_dump -U shop --password=@ orders
    "[mail]\nuser=bot\npassword=@\n"
    putenv("MQTT_PASSWORD=@");
    strncpy(settings.password, "@", sizeof settings.password);
    memcpy(passwd, "@", 12);
    setenv("BROKER_PASSWORD", "@", 1);
    std::map<S, S> defaults = {{"password", "@"}, {"port", "1"}};
    { "smtp.password", "@" },
    // machine ftp.host.org login bot password @
    static const char PASS[] = "@";
    std::string dbPassword() { return "@"; }
    auto u = "amqp://bot:@@mq.host.org/x";
    session->setPassword("@");
    INSERT INTO members (name, password) VALUES ('eve', '@');
    <key>password</key><string>@</string>
"""
"""Lines where a value is a password though it is made of letters, of words with hyphens, or of digits alone."""

HEADERS = r"""
    auto h = "Authorization: Basic @";
    headers.emplace("Authorization", "Basic @");
    auto d = "{\"auths\":{\"r.host.org\":{\"auth\":\"@\"}}}";
    // curl -H 'Authorization: Basic @' https://host.org
"""
"""Lines where a user and a password stand in base64."""


def passwords(seed: int) -> Iterator[LabeledLine]:
    """Yield each line with four passwords of different makes."""
    generator = random.Random(seed)
    for lines, makers in (
        (GIVEN, (_plain, _numbered, _signed, _mixed)),
        (PASSED, (_numbered, _leet, _signed, _mixed)),
        (MIXED, (_leet, _signed, _mixed, _random)),
        (NAMED, (_letters, _small_letters, _hyphenated, _phrase, _digits)),
    ):
        for line in lines.strip().split("\n"):
            for make in makers:
                value = make(generator)
                is_of_lines = line.endswith(('\\n    "@";', "\\n */"))
                text = line.strip().replace("\\n", "\n") if is_of_lines else line.strip()
                yield LabeledLine(f"{make.__name__} in {line.strip()}", _filled(text, value), (value,))
    for line in HEADERS.strip().split("\n"):
        value = login_in_base64(generator)
        yield LabeledLine(f"base64 in {line.strip()}", _filled(line.strip(), value), (value.rstrip("="),))


def _filled(line: str, value: str) -> str:
    """Return a line with a value for its first sign `@`; another may be part of an address."""
    return line.replace("@", value, 1)


def _plain(generator: random.Random) -> str:
    return generator.choice(_WORDS) + generator.choice(_WORDS)


def _numbered(generator: random.Random) -> str:
    return f"{generator.choice(_WORDS)}{generator.randrange(10, 9999)}"


def _leet(generator: random.Random) -> str:
    word = generator.choice(_WORDS).capitalize() + generator.choice(_WORDS).capitalize()
    return word.translate(str.maketrans("aeio", "4310")) + str(generator.randrange(10, 99))


def _signed(generator: random.Random) -> str:
    return f"{generator.choice(_WORDS).capitalize()}{generator.choice('!#?*')}{generator.randrange(100, 999)}"


def _mixed(generator: random.Random) -> str:
    alphabet = string.ascii_letters + string.digits
    return (
        "".join(generator.choices(alphabet, k=9))
        + generator.choice("!#?*")
        + "".join(generator.choices(alphabet, k=4))
        + "7"
    )


def _letters(generator: random.Random) -> str:
    return _unlike_words("".join(generator.choices(string.ascii_letters, k=11)), generator)


def _small_letters(generator: random.Random) -> str:
    return _unlike_words("".join(generator.choices(string.ascii_lowercase, k=11)), generator)


def _unlike_words(letters: str, generator: random.Random) -> str:
    """Return letters with two pairs that no word has: of random ones one in eight has fewer, and may be a word."""
    return f"{letters[:3]}{generator.choice(('qz', 'jx', 'vq'))}{letters[3:]}{generator.choice(('zk', 'xj', 'qv'))}"


def _hyphenated(generator: random.Random) -> str:
    return f"{_small_letters(generator)[:6]}-{_small_letters(generator)[:6]}-{generator.randrange(10, 99)}"


def _phrase(generator: random.Random) -> str:
    return "-".join(generator.sample(_WORDS, 4))


def _digits(generator: random.Random) -> str:
    return "".join(generator.sample(string.digits, 4) + generator.sample(string.digits, 4))


def _random(generator: random.Random) -> str:
    return "".join(generator.choices(string.ascii_letters + string.digits, k=24))


def login_in_base64(generator: random.Random) -> str:
    """Return a user and a password as headers have them."""
    return base64.b64encode(f"bob:{_mixed(generator)}".encode()).decode()


PASSWORD_MAKERS = (_numbered, _leet, _signed, _mixed)
"""Makers of passwords with digits, each of a kind."""
