"""Labeled look-alikes: lines of real shapes that hold no secret, and must not change."""

import random
from collections.abc import Iterator

from tests.support.labeled.labeled_mentions import MENTIONS
from tests.support.labeled.labeled_secrets import LabeledLine, Token

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
    auto key = "{H32}"; // AES-128, FIPS 197 C.1
    { "{H32}", "{H24}", "{H64}" }, // key, nonce, ciphertext
    const char* kKeyHex = "{H64}";
    test.key = "{H40}"; test.mac = "{H40}";
    "key" : "{H32}",
    std::string private_key_hex = "{H64}", public_key_hex = "{H64}", message = "{H20}", signature = "{H64}";
    BOOST_CHECK_EQUAL(hmac_sha256("{H40}", "{H20}"), "{H64}");
    key = hex_to_bytes("{H64}"); iv = hex_to_bytes("{H24}");
    uuid = "{H8}-{H4}-4{H3}-a{H3}-{H12}"; // SCWidget
"""
"""Templates with random parts that are digests, identifiers, vectors, sequences and data."""

FIXED = r"""
    key = "name";
    if (key == "timeout_ms") {}
    std::map<std::string, int> keys = {{"key1", 1}, {"key_2", 2}};
    auto type = key + ".int32";
    registerPass("arm64-expand-pseudo", p);
    // key: see above (default 32)
    const char* key_path = "/etc/ssl/private/key.pem";
    url = "http://%s:%s@%s/";
    cookie = "name=value; path=/";
    key = "Content-Type";
    static const char key_chars[] = "abcdefghijklmnopqrstuvwxyz";
    const char* key = "ctrl+shift+p";
    key: "Ctrl+Alt+F4",
    auto tok = "uint64_t";
    key_ = "sha256_rsa2048";
    session = "session_1";
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
    EXPECT_STREQ("AABBCCDDEEFFGGHH", text);
    static const char* kUtf8 = "\xe4\xbd\xa0\xe5\xa5\xbd";
    auto s = "\x1b[31mred\x1b[0m";
    auto key = "Ctrl+Shift+F12";
    map.emplace("key1", "value1");
    constexpr auto kKeyName = "HKEY_LOCAL_MACHINE\\Software\\X2";
    RegOpenKeyExA(h, "SOFTWARE\\Classes\\CLSID\\{0002DF01-0000-0000-C000-000000000046}", 0, k, &r);
    static const char* kPublicKey = "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A";
    registerPass("mem2reg"); registerPass("sccp2");
    test_pass("case_1_of_20");
    check_pass("a1b2", 4);
    auto tok = lexer.next("0x7fff1234abcd5678ull");
    if (tok == "int32_t" || tok == "uint64_t") {}
    cudaKey = "sm_86_compute80";
    session_state = "closed3";
    const std::string kSessionCookieName = "JSESSIONID";
    cookie.set("Path=/; Max-Age=3600; HttpOnly");
    set_cookie("lang=en_US.UTF-8");
    // key: value pairs, sorted by key
    options.add("api-key", "API key of the service, 32 characters");
    DEFINE_string(api_key, "", "Key of the API");
    linear_key = "linear_interpolation_2d";
    square_key = "square_7x7";
    stripe_id = "stripe0/chunk12";
    sentry_key = "guard_page_0x1000";
    docker_tag = "docker.io/library/ubuntu:22.04";
    github_url = "https://github.com/a/b/tree/0a1b2c3d";
    twitter_handle = "@some_project_2024";
    slack_channel = "#builds-v2";
    google_test_key = "GTEST_FLAG_shuffle2";
    azure_region = "westeurope2";
    heroku_version = "heroku-22.04.1";
    okta_domain = "dev-123456.okta.com";
    travis_build = "build-1234567-linux64";
    const Guid kHerokuIid = {0xd18fc9fb, 0x4943, 0x4932, {1}};
    notion_version = "2022-06-28";
    discord_gateway = "wss://gateway.discord.gg/?v=10&encoding=json";
    jwt_alg = "HS256";
    jwt = header + "." + payload + "." + signature;
    auto header = R"({"alg":"HS256","typ":"JWT"})";
    sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    EXPECT_EQ(HmacSha256("key", "The quick brown fox"), "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8");
    const uint8_t key[] = {0x2b, 0x7e, 0x15, 0x16};
    key = "2b7e151628aed2a6abf7158809cf4f3c"; iv = "000102030405060708090a0b0c0d0e0f"; plaintext = "6bc1bee2";
    "-----BEGIN CERTIFICATE-----"
    const char* begin = "-----BEGIN PRIVATE KEY-----";
    if (line.starts_with("-----BEGIN RSA PRIVATE KEY-----")) {}
    #define PEM_STRING_PKCS8 "PRIVATE KEY"
    // ssh-rsa AAAAB3NzaC1yc2E is the prefix of every key
    static const char kMime[] = "application/x-pkcs12";
    boundary = "----WebKitFormBoundary7MA4YWxkTrZu0gW";
    nonce = "dGhlIHNhbXBsZSBub25jZQ==";
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=
    data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ
    _ZNSt6vectorIiSaIiEE9push_backERKi
    operator new[](unsigned long, std::align_val_t)
    mailto:someone@example.org
    user@localhost and root@127.0.0.1
    git@example.com:a/b.git
    @Override @param x1.y2 @see a.b
    ECDHE-RSA-AES128-GCM-SHA256
    TLS_ECDHE_PSK_WITH_AES_128_GCM_SHA256 = "ECDHE-PSK-AES128-GCM-SHA256";
    wifi_mode = "wpa2-psk";
    keyboard.press("Key_A1");
    monkey_patch("patch_2024");
    cert_fingerprint = "AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:01";
    license_key_url = "https://host.org/licenses/2";
    std::unordered_map<Key, Value> m{{"k1", 1}, {"k2", 2}};
    app.get("/users/list", handler);
    CROW_ROUTE(app, "/home/index")([] { return page(); });
    svr.Get("/users/profile", f);
    redirect("/home/dashboard");
    path == "/users/search"
    std::string x = "4.19.0.2";
    auto v = "12.3.0.1";
    const char *sdk = "10.1.2.40";
    set(LIB "2.6.32.5")
    x = parse("1.12.0.4");
    DEFINE_string(key_format, "sha256v2", "format of keys");
    cxxopts::value<std::string>()->default_value("127.0.0.1:8080")
    ("key-size", po::value<int>()->default_value(2048), "bits")
    TCLAP::ValueArg<std::string> key("k", "key", "Key", false, "user_id", "string");
    std::string getKeyName() { return "key42"; }
    "host:port" "key:value" "user:name"
    auto ratio = "16:9";
    time = "12:45:10";
    { "admin", "Administrator" }, // user, full name
    // log in as root first, then run step2.sh
    #define HEAD "ghp_"
    #define A "prefix_" B "suffix_2"
    #define PRI_KEY "%" PRIx64
    curl_easy_setopt(curl, CURLOPT_URL, "https://h.org/v2");
    redisCommand(c, "SET key1 value2");
    ldap_simple_bind_s(ld, NULL, NULL);
    SCW_DEFAULT_REGION = "fr-par-1";
    #define TLS1_TXT_ECDHE_PSK_WITH_3DES_EDE_CBC_SHA "ECDHE-PSK-3DES-EDE-CBC-SHA"
    #define SN_id_it_signKeyPairTypes "id-it-signKeyPairTypes"
    * @APSK_16: 16-APSK modulation
    /* 802.3ad port state definitions (43.4.2.2 in the 802.3ad standard) */
    // key: 000102030405060708090a0b0c0d0e0f
    // KAT: Key = 2b7e151628aed2a6abf7158809cf4f3c
    ftp://anonymous:anonymous@ftp.host.org/
    "iVBORw0KGgoAAAANSUhEUgAAAAUA"
    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    connect(&client, "readyRead", this, "onReady2");
    QObject::connect("sender", "signalName", "slot2");
    include("actions/checkout@v3")
    requires = "zlib/1.2.11@conan/stable"
    icon("icon-{abc}"); url = "img_0123456789abcdef";
    std::vector<std::string> keys = {"alpha1", "beta2", "gamma3"};
    {16, 32, /*private_key_bytes=*/PARAMS_SHA2_128S_PRIVATE_KEY_BYTES, 7},
    // https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX
    static const User users[] = { { "admin", "Administrator" }, { "guest", "Guest account" } };
    EXPECT_EQ(account_id("a"), "0b7Yq2xTgD5kWm8RzLcVnE4uJpQs1HfA");
    const std::string kExpectedId = "0b7Yq2xTgD5kWm8RzLcVnE4uJpQs1HfA";
    static const char* kPublicKey[] = {"0b7Yq2xTgD5kWm8RzLcVnE4uJpQs1HfA", "Kd93mZpQ7wXbTn2LyRv5sGcJh8FuAe1V"};
    build_id = "3f786850e387550fdab836ed7e6dc881de23001b86e9a3d1c2c0b1e4f5a6978d";
    // crypt: $6$salt$hash and $2b$cost$salt
    runas /user:Administrator cmd.exe
    snmp-server community public RO
    const char* builtins[] = { "popd", "pushd", "pwd", "rehash", "realsqrt" };
    static const char* names[] = { "mkdir", "chdir", "fzero", "passwd", "hex2dec", "xor2", "atan2" };
    field("password", "varchar64");
    {"password", "string32", true},
    column("passwd", "CHAR(41)");
    schema.add("password", "utf8mb4");
    loadPlugin("password_plugin", "sha256_password");
    setType("password", "sha512crypt");
    hash("password", "argon2id");
    REGISTER("HTTPPasswordMgr", "urllib2", "urllib.request");
    addTest("PasswordTest", "suite2");
    tr("password", "mot2passe");
    METHOD("changePassword", "method12");
    // password: base64-encoded, optional
    const char* names[] = {"ValidBasicCRLSigningKeyTest6EE", "InvalidBasicSelfIssuedCRLSigningKeyTest7EE"};
"""
"""Lines as they are: names, keys, numbers, addresses, digests and paths."""

_NUM_OF_EACH = 18


def lookalikes(seed: int) -> Iterator[LabeledLine]:
    """Yield each template several times, and each line as it is."""
    generator = random.Random(seed)
    for line in RANDOM.strip().split("\n"):
        for _ in range(_NUM_OF_EACH):
            yield LabeledLine(line.strip(), Token.made(line.strip().replace("\\n", "\n"), generator).text)
    for line in (*FIXED.strip().split("\n"), *MENTIONS.strip().split("\n")):
        yield LabeledLine(line.strip(), line.strip().replace("¶", "\n"))
