"""Labelled look-alikes: lines of real shapes that hold no secret, and must not change."""

import random
from collections.abc import Iterator

from tests.support.labelled_secrets import LabelledLine, Token

RANDOM = r"""
    const char kSha256[] = "{H64}";
    // sha1: {H40}
    EXPECT_EQ(md5("a"), "{H32}");
    auto commit = "{H40}";
    static const Guid kId = "{H8}-{H4}-{H4}-{H4}-{H12}";
    // {H8}-{H4}-{H4}-{H4}-{H12}
    DEFINE_GUID(IID_IThing, 0x{H8}, 0x{H4}, 0x{H4}, 0x{H2});
    static const uint64_t kSeed = 0x{H16}ull;
    "digest": "sha256:{H64}",
    #define BUILD_REVISION "{H12}"
    assert(hash == "{H64}");
    checksum = "{H8}";
    // integrity sha384-{P64}
    const char* expected = "{P44}";
    { "{H40}", "{H40}", "{H40}", "{H40}", "{H40}" },
    "{P76}"\n    "{P76}"\n    "{P76}"\n    "{P76}"\n    "{P76}"
    auto nonce = hex("{H24}");
    auto iv = "{H32}"; auto tag = "{H32}"; auto msg = "{H32}"; auto key = "{H32}";
    x = _ZN4absl{D2}lts_{D8}13base_internal{D2}Foo;
    magnet:?xt=urn:btih:{H40}
    ETag: "{H32}"
    fingerprint = "SHA256:{P43}";
    // see https://github.com/a/b/commit/{H40}
    uuid: {H8}-{H4}-{H4}-{H4}-{H12}
    static const char dna[] = "{N48}";
    const char kProtein[] = "M{Q60}";
    version = "1.{D1}.{D2}-{H7}";
    build-{D8}-{H7}.tar.gz
"""
"""Templates with random parts that are digests, identifiers, vectors, sequences and data."""

FIXED = r"""
    password = "";
    auto password = "password";
    auto p = "<password>";
    password = "your-password";
    password = "changeme";
    password = "********";
    password = "xxxxxxxx";
    password = "...";
    snprintf(b, n, "password=%s", pw);
    password = "${PASSWORD}";
    password = "$(PW)";
    password = "{{ password }}";
    password = "%PASSWORD%";
    password = "@PASSWORD@";
    password = getenv("DB_PASSWORD");
    password = config.get("db.password");
    password = read_password("Password: ");
    password = nullptr;
    password = NULL;
    std::cout << "Enter password: ";
    auto prompt = "Password:";
    error("invalid password for user");
    throw std::runtime_error("password must not be empty");
    const char* kPasswordField = "password";
    const char* kPasswordLabel = "Your password";
    json["password"] = user.password;
    enum class Field { kPassword = 3 };
    <input type="password" name="password">
    token = "identifier";
    key = "name";
    if (key == "timeout_ms") {}
    if (token == "->*") {}
    std::map<std::string, int> keys = {{"key1", 1}, {"key_2", 2}};
    add_option("password", "The password of the user");
    {"username", "password", "email"};
    case Token::kString: return "string";
    auto type = key + ".int32";
    pass = "loop-unroll";
    registerPass("arm64-expand-pseudo", p);
    #define PASSWORD_MAX_LENGTH "64"
    tokens = split("a,b,c");
    // password: the user's password
    // key: see above (default 32)
    std::string token_type = "Bearer";
    auth_method = "SCRAM-SHA-256";
    const auto secret_name = "db/prod/password";
    const char* key_path = "/etc/ssl/private/key.pem";
    url = "http://user:password@host/";
    url = "http://user:pass@host/";
    url = "https://${USER}:${PASS}@host/";
    url = "http://%s:%s@%s/";
    auto header = "Authorization: Basic ";
    auto header = "Authorization: Bearer <token>";
    QLabel* passLabel = new QLabel("Pass");
    cookie = "name=value; path=/";
    key = "Content-Type";
    static const char key_chars[] = "abcdefghijklmnopqrstuvwxyz";
    const char* key = "ctrl+shift+p";
    key: "Ctrl+Alt+F4",
    EXPECT_EQ(token, "0x1.8p3");
    auto tok = "uint64_t";
    key_ = "sha256_rsa2048";
    session = "session_1";
    password = Password(3);
    secret = computeSecret(a, b);
    auth = "none";
    ssl_key = "server.key";
    private_key_file = "id_rsa";
    auto key = "AKIAIOSFODNN7EXAMPLE";
    auto s = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    auto t = "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    auto t = "sk_live_...";
    auto t = "glpat-XXXXXXXXXXXXXXXXXXXX";
    auto k = "sk-your-api-key-goes-here";
    if (starts_with(t, "ghp_") || starts_with(t, "github_pat_")) {}
    static const char kBase64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char kHex[] = "0123456789abcdef";
    auto empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    auto empty = "d41d8cd98f00b204e9800998ecf8427e";
    #include "third_party/boringssl/src/crypto/fipsmodule/sha512.h"
    glFramebufferTexture1D = load("glFramebufferTexture1D");
    RegisterKernel("Conv2DBackpropInputV2GradHelper64", nullptr);
    // [17.6.3.5] allocator requirements
    // C11 7.20.1.3.3 and C++17 [23.2.4.1]
    #define X_VERSION "4.19.0.2"
    // Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/118.0.0.0 Safari/537.36
    auto oid = "1.3.6.1.4.1.311.2.1.14";
    FILEVERSION 10.0.22621.1
    int v[] = {1.2.3.4};
    // libfoo.so.1.2.3.4
    // RFC 8446, section 4.2.11.2
    addr = "239.255.255.250"; // multicast
    mask = "255.255.254.0";
    addr = "198.18.0.1";
    addr = "0.0.0.0"; addr = "127.0.0.1"; addr = "192.168.1.20";
    // @param name.size the size
    // foo@example.com
    #pragma comment(lib, "a@4.lib")
    Foo::operator@bar.baz
    std::string home = "/home/";
    path = "/usr/home_x/lib";
    // /home/... and ~/ are folders
    std::regex re("^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\\.[A-Za-z]{2,}$");
    auto a = std::string(32, 'x');
    case KEY_F12: return "F12";
    const char* keys[] = {"alpha", "beta", "gamma"};
    std::string passthrough = "passthrough";
    bypass = "compass/v2";
    monkey = "banana42split";
    keyboard = "us-intl";
    tokenizer = "bert-base-uncased";
    authors = "A. Lovelace and C. Babbage";
    secretary = "none";
    EXPECT_STREQ("AABBCCDDEEFFGGHH", text);
    static const char* kUtf8 = "\xe4\xbd\xa0\xe5\xa5\xbd";
    auto s = "\x1b[31mred\x1b[0m";
    R"(password = <your password here>)";
"""
"""Lines as they are."""

_NUM_OF_EACH = 18


def lookalikes(seed: int) -> Iterator[LabelledLine]:
    """Yield each template several times, and each line as it is."""
    generator = random.Random(seed)
    for line in RANDOM.strip().split("\n"):
        for _ in range(_NUM_OF_EACH):
            yield LabelledLine(line.strip(), Token.made(line.strip().replace("\\n", "\n"), generator).text)
    for line in FIXED.strip().split("\n"):
        yield LabelledLine(line.strip(), line.strip())
