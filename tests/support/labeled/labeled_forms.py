"""Labeled forms: the wrappings in which programs, configurations and comments hold secrets, one line or a few for each.

`§` stands for a password, `¤` for a user and a password in base64; random parts are as in `labeled_secrets.py`. All must go.
"""

import random
import re
from collections.abc import Callable, Iterator

from tests.support.labeled.labeled_passwords import PASSWORD_MAKERS, login_in_base64
from tests.support.labeled.labeled_places import PLACES
from tests.support.labeled.labeled_secrets import ALPHABETS, LabeledLine

DIVIDED = r"""
    auto t = "ghp_" /* the linter is quiet so */ "{W36}";
    const char *kToken = "xoxb-{D12}-" // workspace¶    "{D12}-" // bot¶    "{W24}";
    constexpr char8_t k[] = u8R"tok(sk_live_{W24})tok";
    std::wstring w{LR"(AKIA{B16})"};
    #define STRIPE L"rk_live_" L"{W24}"
    #define USE(x) x("ghp_{W36}")
    #define PAT \¶    "glpat-" \¶    "{S20}"
    static auto f = [tok = std::string("glpat-{S20}")]() mutable { return tok; };
    connect([]{ return "npm_{W36}"sv; }());
    switch (h) { case hash("hf_{L34}"): break; }
    static_assert(sv("AIza{S35}").size() == 39);
    { .name = "prod", .dsn = "https://{H32}@o12345.ingest.sentry.io/{D7}" },
    /** @brief uses dop_v1_{H64} until the rotation */
    std::array keys{"sk-ant-api03-{S93}AA"s, ""s};
    auto j = nlohmann::json::parse(R"({"k": ["pypi-AgEIcHlwaS5vcmc{S100}"]})");
    // auto x = f("shpat_{H32}"); old
    #pragma message("tskey-auth-{W16}-{W32}")
    throw Denied("bad token: ghs_{W36}");
    LOG(INFO) << "using " << "github_pat_{W22}_{W59}" << std::endl;
    using T = Tag<"dckr_pat_{S27}">;
    asm volatile("# rubygems_{H48}");
    goto done; done: puts("SG.{S22}.{S43}");
    operator""_k("figd_{S40}");
    extern "C" { const char* k = "glsa_{W32}_{H8}"; }
    if constexpr (x) return "EAAA{S60}"; else return "";
    log << "ghp_{W9}"¶    << "{W27}";
    // token ghp_{W12}-¶// {W24}
    auto encoded = "Z2hwX{W43}";
"""
"""Tokens in code."""

PAIRS = r"""
    //   AWS_ACCESS_KEY_ID=AKIA{B16}¶//   AWS_SECRET_ACCESS_KEY={P40}
    Aws::Auth::AWSCredentials creds("AKIA{B16}", "{P40}");
    client.setCredentials({"AKIA{B16}", "{P40}"});
    aws_access_key_id = "AKIA{B16}"; aws_secret_access_key = "{P40}";
    { "accessKeyId": "AKIA{B16}", "secretAccessKey": "{P40}" }
    static const char kId[] = "AKIA{B16}";¶static const char kIt[] = "{P40}";
    #define AWS_A "AKIA{B16}"¶#define AWS_B "{P40}"
    // id AKIA{B16}¶// and {P40}
    m["id"] = "AKIA{B16}";¶m["sec"] = "{P40}";
    c.Set("{P40}"); c.SetId("AKIA{B16}");
    c.id = "AKIA{B16}";¶c.region = "eu-west-1";¶c.v = "{P40}";
    std::string id = "LTAI{W20}"; std::string it = "{W30}";
    std::string id = "AKID{W32}";¶std::string it = "{W32}";
    #define RZ_ID "rzp_live_{W14}"¶#define RZ_IT "{W24}"
    TwilioClient client("AC{H32}", "{H32}");
    auto app = OAuthClient{"name", "GOCSPX-{S28}"};
    TencentCredential cred("AKID{W32}", "{W32}");
    auto a = {"LTAI{W20}", "{W30}"}; // Alibaba access key
    setenv("AWS_SECRET_ACCESS_KEY", "{P40}", 1);
    "[default]\naws_access_key_id = AKIA{B16}\naws_secret_access_key = {P40}\n"
    auto oauth = OAuth1("{W25}", "{W50}", "{D10}-{W40}", "{W45}"); // consumer key, consumer secret, token, token secret
"""
"""Both halves of a pair."""

TEXTS = r"""
    R"yaml(¶database:¶  user: svc¶  password: §¶)yaml"
    R"toml(¶[db]¶password = "§"¶)toml"
    R"toml(¶token = '{W40}'¶)toml"
    R"({"db": {"password": "§", "port": 1}})"
    "{\"client_secret\":\"{S28}\"}"
    "[client]\nuser=root\npassword=§\n"
    "[pypi]\nusername = __token__\npassword = §\n"
    "Data Source=db1;Initial Catalog=x;User ID=sa;Pwd=§;Encrypt=yes"
    "jdbc:sqlserver://h:1433;databaseName=d;user=sa;password=§;"
    "jdbc:oracle:thin:scott/§@//h:1521/x"
    "mongodb+srv://svc:§@cluster0.host.net/admin"
    "mysql://root:§@127.0.0.1:3306/app"
    "sftp://bob:§@files.host.org:22/in"
    "redis://default:§@r.host.org:6379"
    "https://x-access-token:ghs_{W36}@github.com/a/b.git"
    "host=db.host.org port=5432 dbname=a user=b password='§'"
    "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=n;SharedAccessKey={P43}="
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={P86}==;EndpointSuffix=core.windows.net"
    "https://h.org/login?user=bob&passwd=§"
    "https://api.h.org/v1?api_key={W32}&q=1"
    "https://api.h.org/v1?access_token={W40}"
    <add key="ApiKey" value="{W32}" />
    <connection user="bob" pwd="§"/>
    <property name="password">§</property>
    "<Password><![CDATA[§]]></Password>"
    // spring.datasource.password=§
    // password: "§"
    /* user: bob pass: § */
    // pw: § (do not commit)
    // the root password is §
    // default credentials: admin / §
    // netrc:¶// machine api.host.org¶//   login bob¶//   password §
    "*:*:*:postgres:§\n"
    {"auths": {"https://index.docker.io/v1/": {"auth": "¤"}}}
    R"({"identitytoken": "{S60}"})"
    "//registry.npmjs.org/:_authToken={W36}"
"""
"""Connection strings, URLs, JSON, YAML, TOML, XML, INI, netrc, pgpass and Docker's configuration."""

CODE = r"""
    #define WIFI_PASS "§"
    #define WIFI_PSK "§"
    const char* psk = "§";
    WiFi.begin("home-net", "§");
    std::pair<std::string,std::string> login{"bob", "§"};
    Credentials c = { "bob", "§" };
    ftp.login("bob", "§");
    sqlite3_key(db, "§", 12);
    PQsetdbLogin(h, p, nullptr, nullptr, db, "bob", "§");
    SSL_CTX_set_default_passwd_cb_userdata(ctx, (void*)"§");
    PKCS12_parse(p12, "§", &k, &c, nullptr);
    putenv("PGPASSWORD=§");
    _putenv_s("SMTP_PASS", "§");
    qputenv("API_TOKEN", "{W32}");
    const std::string kHmacSecret = "{H64}";
    auto cfg = Config{.host = "h", .passwd{"§"}};
    cfg["auth"]["password"] = "§";
    db->open("bob", /*password=*/"§");
    db->open(/*user*/ "bob", /*pwd*/ "§");
    static constexpr std::string_view kPw = "§";
    wchar_t const szPassword[] = L"§";
    QSqlDatabase d; d.setUserName("bob"); d.setPassword("§");
    params.emplace_back("password", "§");
    enum { }; static const char* const passwords[] = {"§"};
    return password == "§" ? kOk : kDenied;
    EXPECT_TRUE(verifyPassword("§", hash));
    snprintf(buf, n, "user=bob;password=§;timeout=%d", t);
    std::string connect(std::string pw = "§");
    auto secret = std::make_unique<std::string>("§");
    constexpr auto kAdminPw = std::to_array("§");
    NSString *password = @"§";
    const String pass = F("§");
"""
"""Passwords in code."""

COMMAND_LINES = r"""
    args.push_back("--password=§");
    run({"tool", "--token", "{W32}"});
    system("mysqldump -uroot -p§ shop > /tmp/x");
    system("openssl enc -aes-256-cbc -pass pass:§ -in a");
    system("curl --user bob:§ -O ftp://h.org/x");
    system("wget --user=bob --password=§ http://h.org");
    system("sshpass -p'§' scp a b:");
    popen("psql postgresql://bob:§@h.org/db", "r");
    // $ echo § | sudo -S apt install x
    // smbclient //s/share -U bob%§
    // ldapsearch -D cn=admin -w § -b dc=x
    // g++ -DDB_PASSWORD=\"§\" main.cpp
    // docker run -e MYSQL_ROOT_PASSWORD=§ mysql
    // helm install x --set auth.password=§
    // export SMTP_PASSWORD='§'
    // set DB_PASS=§
    // mysql --user=root --password='§' shop
    // mongo -u bob -p § --authenticationDatabase admin
    // htpasswd -b file bob §
    // git clone https://bob:§@github.com/a/b.git
"""
"""Command lines."""

HEADERS_OF_REQUESTS = r"""
    "Authorization: Bearer {S40}"
    req.set_header("Authorization", "Bearer " "{S40}");
    headers["Authorization"] = "token {H40}";
    headers = curl_slist_append(headers, "X-Api-Key: {W32}");
    headers = curl_slist_append(headers, "PRIVATE-TOKEN: {S20}");
    "GET / HTTP/1.1\r\nProxy-Authorization: Basic ¤\r\n\r\n"
    "Cookie: session={H40}; Path=/"
    {"x-auth-token", "{W32}"},
    cli.set_bearer_token_auth("{W40}");
    cli.set_basic_auth("bob", "§");
    request.setRawHeader("Authorization", QByteArray("Basic ") + "¤");
"""
"""Headers of requests."""

FORMS = {
    "divided": DIVIDED,
    "pairs": PAIRS,
    "texts": TEXTS,
    "code": CODE,
    "command lines": COMMAND_LINES,
    "headers": HEADERS_OF_REQUESTS,
    **PLACES,
}
_PART = re.compile(r"\{([A-Za-z])([0-9]+)\}|[¤§]")
_MIN_SECRET = 4


def secret_forms(seed: int) -> Iterator[LabeledLine]:
    """Yield each form with each make of password, or once if it has none."""
    generator = random.Random(seed)
    for kind, lines in FORMS.items():
        for line in lines.strip().split("\n"):
            for make in PASSWORD_MAKERS if "§" in line else PASSWORD_MAKERS[:1]:
                yield _filled(kind, line.strip().replace("¶", "\n"), make, generator)


def _filled(kind: str, line: str, make: Callable[[random.Random], str], generator: random.Random) -> LabeledLine:
    secrets: list[str] = []

    def fill(part: re.Match[str]) -> str:
        if part[0] == "§":
            value = make(generator)
        elif part[0] == "¤":
            value = login_in_base64(generator)
        else:
            value = "".join(generator.choices(ALPHABETS[part[1]], k=int(part[2])))
        secrets.append(value.rstrip("="))
        return value

    text = _PART.sub(fill, line)
    return LabeledLine(f"{kind}: {line}", text, tuple(each for each in secrets if len(each) >= _MIN_SECRET))
