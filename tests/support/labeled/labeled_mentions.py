"""Labeled mentions: lines that speak of passwords, tokens, secrets and logins, hold none, and must not change."""

MENTIONS = r"""
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
    if (token == "->*") {}
    add_option("password", "The password of the user");
    {"username", "password", "email"};
    case Token::kString: return "string";
    pass = "loop-unroll";
    #define PASSWORD_MAX_LENGTH "64"
    tokens = split("a,b,c");
    // password: the user's password
    std::string token_type = "Bearer";
    auth_method = "SCRAM-SHA-256";
    const auto secret_name = "db/prod/password";
    url = "http://user:password@host/";
    url = "http://user:pass@host/";
    url = "https://${USER}:${PASS}@host/";
    auto header = "Authorization: Basic ";
    auto header = "Authorization: Bearer <token>";
    QLabel* passLabel = new QLabel("Pass");
    EXPECT_EQ(token, "0x1.8p3");
    password = Password(3);
    secret = computeSecret(a, b);
    auth = "none";
    tokenizer = "bert-base-uncased";
    authors = "A. Lovelace and C. Babbage";
    secretary = "none";
    R"(password = <your password here>)";
    pass = "inline2";
    passes = {"licm", "gvn2", "sroa1"};
    PassBuilder.parsePassPipeline("loop(unroll4)");
    const char* token_names[] = {"TOKEN_LPAREN", "TOKEN_INT32", "TOKEN_ARROW2"};
    tokenize("a1 + b2 * c3");
    expect_token("identifier42");
    auth_type = "oauth2";
    auth = "rsa2048sha256";
    auth_scheme = "AWS4-HMAC-SHA256";
    LOG(INFO) << "password: " << password;
    printf("secret=%s token=%08x\n", s, t);
    std::cerr << "usage: tool --password <password> --token <token>\n";
    puts("Please enter your password (8 to 32 characters):");
    // The password must have at least 8 characters, 1 digit and 1 sign.
    // password is hashed with bcrypt, cost 12
    // the password is read from stdin
    // passwords are compared in constant time
    // credentials: see docs/auth.md
    // credentials are loaded from ~/.netrc or $NETRC
    // token is at index 3
    // secret sharing: (k, n) threshold schemes
    // pass 1: collect symbols; pass 2: resolve them
    // pass: uint64_t by value
    // login: 3 attempts
    /* user: pointer to the user data pass: the pass number */
    // user pass 2 of 3
    error("login failed: user %s password %s", u, p);
    throw AuthError("token expired at 2024-01-01T00:00:00Z");
    QObject::tr("Password:");
    i18n("Enter the passphrase for key %1", id);
    <label for="password1">Password</label>
    <input name="token" type="hidden" value="{{ csrf_token }}">
    "password": {"type": "string", "minLength": 8}
    "secretKeyRef": {"name": "db", "key": "password"}
    password: ${DB_PASSWORD:-}
    password: !vault |
    token = os.environ["API_TOKEN"]
    api_key = read_file("/run/secrets/api_key");
    const char* env = getenv("AWS_SECRET_ACCESS_KEY");
    ABSL_FLAG(std::string, token, "", "Token of the bot");
    app.add_option("--token", token, "Token");
    segment_token = "segment_0001_of_0010";
    vault_path = "secret/data/app2/config";
    telegram_api = "https://api.telegram.org/bot<token>/sendMessage";
    EXPECT_EQ(hash("password"), "5f4dcc3b5aa765d61d8327deb882cf99");
    PassManager<Function> manager("fpm1");
    AuthContext context("ctx_17");
    LoginDialog dialog("login_dialog_2");
    router.add("/users/login", login);
    app.add_option("--password", pw, "Password of the database");
    app.add_option("--password-file", f)->default_val("/etc/app/pw2.txt");
    ("password,p", po::value<std::string>(), "password for user v2")
    DEFINE_string(password_env, "APP_PW_V2", "variable");
    program.add_argument("--token-type").default_value(std::string("bearer2"));
    std::string getPasswordPrompt() { return "Enter your password, 8 to 20 characters:"; }
    const char* passwordColumn() { return "pw_col_2"; }
    std::string getToken() { return "identifier"; }
    QString passwordLabel() const { return tr("Password 2:"); }
    auto tokenName = [](int t) { return "TOK_IDENT2"; };
    const char* auth_method() { return "SCRAM-SHA-256"; }
    auth = "basic:digest";
    { "user", "password" }, // columns
    { "password", "string", 32 }, // name, type, size
    // user, password: both are required since 2.4
    // the password is stored hashed (bcrypt, cost 12)
    // the password is 32 bytes long
    // login with OAuth2 or SAML2
    // use utf8 as the encoding of the password
    // password is at offset 0x1f4
    // the password was changed in version 2.1
    // credentials/config2.json
    // Le mot de passe est requis pour SHA-256
    // mot de passe : voir section 4.2
    // Das Passwort wird mit bcrypt12 gehasht
    // Kennwort: mindestens 8 Zeichen
    // la contraseña es obligatoria desde 2.0
    // a senha é validada no passo 3
    // hasło: minimum 8 znaków
    // пароль: не менее 8 символов
    // パスワードは8文字以上です
    // 密码长度为8到16位
    R"(password: string¶token: uint64¶)"
    R"(¶password:¶  type: string¶  minLength: 8¶)"
    R"(usage: tool --password=PASSWORD)"
    <password></password>
    <password>${db.password}</password>
    <xs:element name="password" type="xs:string"/>
    <token>IDENT</token>
    mysql_real_connect(conn, host, user, passwd, "shop_v2", 0, NULL, 0);
    curl_easy_setopt(curl, CURLOPT_USERPWD, "user:password");
    redisCommand(c, "AUTH %s", pw);
    ssh_userauth_password(session, NULL, password);
    sqlite3_exec(db, "SELECT password FROM users2", 0, 0, 0);
    exec("ALTER USER app WITH PASSWORD '%s'");
    "PASS %s\r\n"
    "AUTH LOGIN\r\n"
    printf("PASS: test_17\n");
    [  PASSED  ] 12 tests
    PASS 2 of 3
    LogonUser(user, domain, pass, LOGON32_LOGON_BATCH, LOGON32_PROVIDER_WINNT50, &h);
    password.encode("latin1")
    "Authorization: AWS4-HMAC-SHA256 Credential="
    tr["password"] = "пароль";
    strings["login.password"] = "Wachtwoord";
    PublicKeyToken=31bf3856ad364e35
    credentials: "include"
    auth_url = "https://accounts.google.com/o/oauth2/auth";
    <string name="enter_password">Enter your password</string>
    mongodb://<user>:<password>@host/db
    "https://user:password%25@www.host.org"
    auto x = flag ? "first1" : "second2"; // password dialog
    print("usage2"); // reset password
    if (pass == "inline2") run();
    token_type_t t = token("c2_x4");
    Connect(/*user=*/user, /*password=*/kTestPassword, 3);
    Connect(/*user=*/user, /* password= */ g_options.password2, 3);
    Call(/*auth_token=*/nullptr, /*api_key=*/API_KEY_V2_DEFAULT);
    return StrCat("CompositeCallCredentials{", absl::StrJoin(outputs, ","), "}");
    return StrCat("Password(", Mask(value2, "*"), ")");
    log("password=" + Quote(given2) + ";");
    // `NID_pkcs9_challengePassword`, `NID_pkcs9_emailAddress`,
    SecretKeySpec spec("HmacSHA256");
    // curl -H "Authorization: Bearer YOUR_ACCESS_TOKEN" https://api.host.org
    "llvm.ptrauth.auth", "llvm.read.register", "llvm.sadd.sat", "llvm.sdiv.fix",
    // password: optional
    // password: encrypted
    // password: user-supplied
    // secret: see below
    // password: hashed.
    //   token: buffer
    /* password: cleartext */
    * password: unused
    // --password=FILE reads it from a file
    // --password-stdin or --password=PROMPT
    // export DB_PASSWORD=$(cat pw)
    // PGPASSWORD=<password> psql
    // MYSQL_ROOT_PASSWORD=changeme docker run
    password = prompt("Password: ");
    // password = prompt(
    putenv("PGPASSWORD=");
    setenv("PGPASSWORD", password, 1);
    strcpy(password, "");
    strcpy(password_label, "Password of user2");
    memcpy(secret, buffer2, 32);
    {"password", "Password"}, {"secret", "client_secret"},
    {"password", "string"}, {"token", "uint64_2"},
    #define PASSWORD_LENGTH 32u
    #define DB_PASSWORD config_password2
    #define SECRET_MASK 0xdeadbeef42
    #define SECRET_BIT BIT(3)
    INSERT INTO users (name, password) VALUES (?, ?)
    INSERT INTO users (name, password) VALUES (:name, :password)
    INSERT INTO users (name, password) VALUES ('%s', '%s')
    std::string getPasswordHint() { return "your first pet"; }
    std::string password() { return password_; }
    <key>password</key><string></string>
    <key>password_label</key><string>Password</string>
"""
