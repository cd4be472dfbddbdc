"""Labeled places: where a password or token stands that has no name of its own beside it, one line or a few for each.

Parts are written as in `labeled_forms.py`. All must go.
"""

OPTIONS = r"""
    program.add_argument("-p", "--password").help("Password of the account").default_value(std::string("§"));
    app.add_option("--password", pw, "Password of the database")->default_val("§");
    app.add_option("-w,--db-password", opts.pw)->capture_default_str()->default_str("§");
    desc.add_options()("password,p", po::value<std::string>(&pw)->default_value("§"), "password to use");
    options.add_options()("k,api-key", "Key", cxxopts::value<std::string>()->default_value("{W32}"));
    DEFINE_string(password, "§", "Password of the user");
    DEFINE_string(mysql_passwd, "§", "");
    ABSL_FLAG(std::string, admin_password, "§", "Password of the administrator");
    TCLAP::ValueArg<std::string> pw("p", "password", "Password", false, "§", "string");
    static cl::opt<std::string> Password("password", cl::desc("Password"), cl::init("§"));
    QCommandLineOption passwordOption("password", "The password.", "password", "§");
    parser.add_argument("--password", default="§", help="x")
    parser.add_argument('--secret', '-s', type=str, default='§')
    args::ValueFlag<std::string> pw(parser, "password", "The password", {'p', "password"}, "§");
    flag.String("password", "§", "usage of it")
"""
"""Defaults of options, in the forms of parsers."""

CALLS = r"""
    ldap_simple_bind_s(ld, dn, "§");
    ldap_bind_s(ld, "cn=admin,dc=x,dc=org", "§", LDAP_AUTH_SIMPLE);
    mysql_real_connect(&mysql, "db1", "app", "§", "shop", 3306, nullptr, 0);
    PGconn* c = PQsetdbLogin("h", "5432", NULL, NULL, "shop", "app", "§");
    curl_easy_setopt(h, CURLOPT_USERPWD, "bob:§");
    curl_easy_setopt(curl, CURLOPT_PROXYUSERPWD, "proxy:§");
    curl_easy_setopt(curl, CURLOPT_PASSWORD, "§");
    redisReply* r = (redisReply*)redisCommand(c, "AUTH §");
    freeReplyObject(redisCommand(ctx, "AUTH %s %s", "default", "§"));
    LogonUserW(L"svc", L"CORP", L"§", LOGON32_LOGON_NETWORK, 0, &token);
    SQLConnect(dbc, (SQLCHAR*)"dsn", SQL_NTS, (SQLCHAR*)"sa", SQL_NTS, (SQLCHAR*)"§", SQL_NTS);
    ssh_userauth_password(session, NULL, "§");
    libssh2_userauth_password(session, "root", "§");
    mosquitto_username_pw_set(mosq, "sensor", "§");
    InternetConnectA(net, "ftp.h.org", 21, "bob", "§", INTERNET_SERVICE_FTP, 0, 0);
    smtp_client.authenticate("bob@example.org", "§", AuthMethod::Plain);
    ftp->login("anonymous2", "§");
    OCILogon(env, err, &svc, (text*)"scott", 5, (text*)"§", 8, (text*)"orcl", 4);
    amqp_login(conn, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest2", "§");
    mongoc_uri_set_password(uri, "§");
    taos_connect("127.0.0.1", "root", "§", NULL, 0);
"""
"""Arguments of known logins."""

RETURNED = r"""
    std::string getPassword() { return "§"; }
    const char* Settings::dbPassword() const noexcept { return "§"; }
    QString Account::password() const¶{¶    return QStringLiteral("§");¶}
    auto password = []() -> std::string { return "§"; };
    auto get_secret = [&] { log("x"); return std::string{"§"}; };
    static std::string_view passphrase(int) {¶  // TODO: move to the vault¶  return "§"sv;¶}
    virtual std::string api_token() const override { return "{W36}"; }
"""
"""Values that functions and lambdas return."""

TABLES = r"""
    cli.set_auth("deploy:§");
    std::string userpwd = "admin:§";
    const char* credentials = "backup:§";
    http.basicAuth("operator:§");
    { "admin", "§" }, // user, password
    static const Account accounts[] = {¶  // user, password¶  { "root", "§" },¶  { "guest", "§" },¶};
    struct Login { const char* user; const char* password; } logins[] = { { "bob", "§" } };
    std::map<std::string, std::string> passwords = { {"alice", "§"}, {"bob", "§"} };
"""
"""Logins and columns of tables."""

SENTENCES = r"""
    // the password is §
    // login with admin / §
    // Use § as the password for the staging box.
    // log in as deploy with password §
    // default login is root:§
    /* test account: user eve, password § */
    // (user: bob, pw: §)
    // Le mot de passe est §
    // mot de passe : §
    // Passwort: §
    // Das Kennwort lautet §
    // la contraseña es §
    // contraseña: §
    // a senha é §
    // senha do banco: §
    // hasło: §
    // Hasło do bazy to §
    // пароль: §
    // Пароль администратора — §
    // パスワードは § です
    // パスワード：§
    // 密码：§
    // 密码是 §
    // 비밀번호: §
    // wachtwoord is §
    // la password di root è §
"""
"""Sentences of comments, in many languages."""

RAW = r"""
    const char* cfg = R"(db:¶  host: h¶  password: §)";
    const char* cfg = R"cfg(¶[smtp]¶user = bob¶password = §¶)cfg";
    auto y = R"(¶credentials:¶  - username: bob¶    secret: §¶)";
    "host: h\npassword: §\nport: 3\n"
    <password>§</password>
    // <password>§</password>
    "<login><user>bob</user><pass>§</pass></login>"
    <Passwd type="plain">§</Passwd>
"""
"""Lines of raw literals and elements."""

PARTS = r"""
    #define TOK_HEAD "ghp_{W12}"¶#define TOK_TAIL "{W24}"¶auto t = TOK_HEAD TOK_TAIL;
    #define P1 "sk_live_"¶#define P2 "{W24}"¶const char* key = P1 P2;
    constexpr char kA[] = "glpat-{W8}";¶constexpr char kB[] = "{W12}";¶std::string t = std::string(kA) + kB;
    #define GH "ghp_"¶const char* t = GH "{W36}";
    scw_access = "SCW{U17}"; scw_secret = "{H8}-{H4}-4{H3}-a{H3}-{H12}";
    Scaleway s("SCW{U17}", "{H8}-{H4}-4{H3}-a{H3}-{H12}");
    auto gh = GitHub("ghp_{W36}");
    if (x == f("AKIA{B16}")) go();
    t["sk_live_{W24}"] = 1;
    request_id = "{W64}";
    s = "xoxb-{D12}-{D12}-{W24}";
"""
"""Tokens whose parts have names, and those of services."""

PROTOCOLS = r"""
    send(sock, "PASS §\r\n", n, 0);
    smtp << "AUTH PLAIN " << "¤" << "\r\n";
    imap.write("a1 LOGIN bob §\r\n");
    irc.send("PRIVMSG NickServ :IDENTIFY §");
    exec("ALTER USER app WITH PASSWORD '§'");
    exec("CREATE USER 'app'@'%' IDENTIFIED BY '§'");
    setpwent(); crypt("§", "$6$salt");
    EXPECT_TRUE(client.Login("bob", "§"));
    options.password.assign("§");
    auto conn = connect({{"user", "bob"}, {"password", "§"}});
    session.setPassword(L"§");
"""
"""Commands of protocols and databases."""

STATEMENTS = r"""
    const dbPassword: string = '§';
    let password: &'static str = "§";
    const char password[] PROGMEM = "§";
    ENV MYSQL_ROOT_PASSWORD §
    setenv DB_PASSWORD §
    keytool -genkey -storepass § -keypass other
    sqlcmd -S db -U sa -P "§"
    ipmitool -H bmc -U ADMIN -P § power on
    lftp -u bob,§ files.host.org
    echo 'root:§' | chpasswd
    net user bob § /add
    nmcli dev wifi connect home password §
    send -- "§\r"; # password
    expect "Password:" { send "§\r" }
    otl_connect::rlogon("scott/§@orcl");
    driver->connect("tcp://db.host.org:3306", "app", "§");
    mqttClient.connect("id", "user", "§");
    QNetworkProxy p(QNetworkProxy::HttpProxy, "px", 8080, "bob", "§");
    User u("bob", "§"); // user, password
    users = {{"bob", "§"}}; // name -> password
    config_setting_set_string(s, "§"); // password
    std::string pw = argc > 2 ? argv[2] : "§";
    auto pw = reg.getString("password").value_or("§");
    std::getenv("DB_PASSWORD") ?: "§"
    auto const userPass = std::pair{"bob"s, "§"s};
    RegSetValueEx(k, "Password", 0, REG_SZ, (BYTE*)"§", 12);
    #define STAPSK "§"
    GRANT ALL ON *.* TO 'bob'@'%' IDENTIFIED BY '§';
    Driver=PostgreSQL;Server=db;Uid=bob;Pwd=§;
    /* admin:§ */
    // ssh root@box (pw §)
    // the wifi key is §
    ; password=§
    SecureString ss = L"§";
    AuthInfo info{ "bob", "§" };
    connect(host, user, /*password=*/"§");
    Credentials c{"bob", "§"};
    EVP_BytesToKey(c, md, salt, (unsigned char*)"§", 9, 1, k, iv);
    // net use \\h\s /user:bob §
    std::string dbpwd = "§";
    #define rootpw "§"
    std::string password [[maybe_unused]] = "§";
    #define USER_AND_PASS "bob", "§"
    password = getenv("PW") ? getenv("PW") : "§";
    const char* password = given ?: "§";
    ("password,p", po::value<std::string>(&password)->default_value("§"))
    EXPECT_EQ(session.password(), "§");
    std::optional<std::string> password = std::make_optional<std::string>("§");
    #include <vector>¶const char* user = "bob";¶const char* pass = "§";
    auto j = R"({"host": "h", "pass": "§"})";
    auto t = R"(¶[db]¶user = 'svc'¶pass = '§'¶)";
    /*password=§*/ connect(user);
    /* host=db password: §*/
    // smbclient //h/s § -U bob
    // remove the hardcoded password §
    "Authorization: SSWS 00{S38}ab"
    "Authorization: GenieKey {H8}-{H4}-4{H3}-a{H3}-{H12}"
    // cargo login {W40}
    algolia.init("APPID12345", "{H32}");
    static const char OPENWEATHER_KEY[] PROGMEM = "{H32}";
    setenv("DD_APP_KEY", "{H40}", 1);
    newVendor("zyx_{l40}");
    #define PASSWD STR(§)
    if (input != "§") puts("wrong password");
    auto& password() { static std::string s = "§"; return s; }
    const char* argv[] = {"mysqldump", "-u", "svc", "-p§", "shop", NULL};
    /* pass=§ user=svc */
"""
"""Statements of other languages and tools, and those that give a password by an alternative, a pair or a comment."""

IDENTIFIERS = r"""
    class Client {¶ public:¶  std::string account_id = "{W64}";¶};
    #include <vector>¶const char* key_id = "{P64}";
    assert(ready);¶auto device_id = "{W40}";
    // version 2 of the test¶std::string secret_id = "{H64}";
    int expected_result() { return 3; }¶std::string installation_id = "{W64}";
    void load() { check(hash); client_id = "{H64}"; }
    std::vector<std::string> seen;¶const char* app_id = "{W32}"; auto n = f("{W40}");
"""
"""Identifiers of accounts and keys below words that explain others."""

STORED_LOGINS = r"""
    // root:$6${W12}${W86}:19000:0:99999:7:::
    "deploy:$apr1${W8}${W22}"
    # alice:$2y$10${W53}
    exec("INSERT INTO accounts (login, mail, password) VALUES ('bob', 'x', '§')");
    INSERT INTO staff (id, password) VALUES (1, '§'), (2, '§');
    static const User users[] = { { "admin", "{W14}" }, { "eve", "{W14}" } };
    <key>smtp_password</key>¶    <string>§</string>
    #define FTP_PASSWORD §
    // runas /user:CORP\svc §
    getConnection(url, "app", "§");
    db.open("scott/§@//ora1:1521/XE");
"""
"""Logins as files and databases keep them, hashed too."""

PLACES = {
    "identifiers": IDENTIFIERS,
    "stored logins": STORED_LOGINS,
    "options": OPTIONS,
    "login calls": CALLS,
    "returned": RETURNED,
    "tables": TABLES,
    "sentences": SENTENCES,
    "raw text": RAW,
    "named parts": PARTS,
    "protocols": PROTOCOLS,
    "statements": STATEMENTS,
}
