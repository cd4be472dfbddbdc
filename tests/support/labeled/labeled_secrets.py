"""Labeled lines of C and C++: secrets that must go and look-alikes that must stay, put together when the tests run.

A template names its random parts: `{W36}` is 36 letters and digits, see ALPHABETS. No secret is in the tree whole.
"""

import random
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass

_HEXADECIMAL = "0123456789abcdef"
_ALPHANUMERIC = string.ascii_letters + string.digits
ALPHABETS = {
    "W": _ALPHANUMERIC,
    "L": string.ascii_letters,
    "l": string.ascii_lowercase + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "B": string.ascii_uppercase + "234567",
    "H": _HEXADECIMAL,
    "D": string.digits,
    "S": _ALPHANUMERIC + "_-",
    "P": _ALPHANUMERIC + "+/",
    "N": "ACGT",
    "Q": "ACDEFGHIKLMNPQRSTVWY",
    "A": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
}
_PART = re.compile(r"(.*?)\{([A-Za-z])([0-9]+)\}", re.DOTALL)

TOKENS = """
    1password A3-{U6}-{U6}-{U5}-{U5}-{U5}-{U5}
    adobe p8e-{l32}
    age AGE-SECRET-KEY-1{A58}
    airtable pat{W14}.{H64}
    alibaba LTAI{W20}
    anthropic sk-ant-api03-{S93}AA
    anthropic sk-ant-admin01-{S93}AA
    anthropic sk-ant-oat01-{S93}AA
    artifactory AKCp{W69}
    artifactory cmVmd{W59}
    asana 1/{D16}:{H32}
    atlassian ATATT3xFfGF0{S174}={U8}
    atlassian ATCTT3xFfGN0{S174}={U8}
    aws AKIA{B16}
    aws ASIA{B16}
    aws ABIA{B16}
    azure {W3}8Q~{S34}
    azure-storage AccountKey={P86}==
    azure-bus SharedAccessKey={P43}=
    azure-sas https://acc.blob.core.windows.net/c?sv=2022-11-02&ss=b&srt=sco&sp=r&se=2030-01-01&sig={W42}%3D
    axiom xaat-{H8}-{H4}-4{H3}-a{H3}-{H12}
    bitbucket ATBB{W24}{H8}
    brevo xkeysib-{H64}-{W16}
    buildkite bkua_{H40}
    cerebras csk-{l48}
    circleci CCIPAT_{W22}_{H40}
    clickhouse 4b1d{W38}
    clojars CLOJARS_{l60}
    cloudflare v1.0-{H24}-{H146}
    cloudflare cfut_{W40}
    cloudinary cloudinary://{D15}:{S27}@name
    confluent cflt{W60}
    contentful CFPAT-{S43}
    crates cio{W32}
    databricks dapi{H32}
    deno ddp_{W36}
    digitalocean dop_v1_{H64}
    digitalocean doo_v1_{H64}
    digitalocean dor_v1_{H64}
    discord M{W23}.{S6}.{S27}
    discord-webhook https://discord.com/api/webhooks/{D18}/{S68}
    docker dckr_pat_{S27}
    docker dckr_oat_{S32}
    doppler dp.pt.{W43}
    doppler dp.st.prd.{W43}
    dropbox sl.{S135}
    duffel duffel_live_{S43}
    dynatrace dt0c01.{U24}.{U64}
    e2b e2b_{H40}
    easypost EZAK{W54}
    elevenlabs sk_{H48}
    facebook EAACEdEose0cBA{W120}
    facebook {D15}|{S27}
    figma figd_{S40}
    firebase AAAA{S7}:APA91b{W134}
    flutterwave FLWSECK_TEST-{H32}-X
    infisical st.{H24}.{H32}.{H32}
    ionic ion_{W42}
    neon napi_{l64}
    new-relic {H36}NRAL
    razorpay rzp_live_{W14}
    snyk snyk_uat.{H8}.{S60}
    fly fo1_{S43}
    fly fm2_{P120}==
    frameio fio-u-{S64}
    github ghp_{W36}
    github gho_{W36}
    github ghu_{W36}
    github ghs_{W36}
    github ghr_{W76}
    github github_pat_{W22}_{W59}
    gitlab glpat-{S20}
    gitlab glpat-{S27}.01.{l9}
    gitlab gldt-{S20}
    gitlab glrt-{S20}
    gitlab glrt-t1_{S27}.01.{l9}
    gitlab glcbt-64_{S20}
    gitlab glptt-{H40}
    gitlab glft-{S20}
    gitlab glimt-{S25}
    gitlab glagent-{S50}
    gitlab glsoat-{S20}
    gitlab gloas-{H64}
    gitlab glffct-{S20}
    gitlab GR1348941{S20}
    google AIza{S35}
    google GOCSPX-{S28}
    google ya29.a0{S120}
    google 1//0{S60}
    grafana glc_{P80}==
    grafana glsa_{W32}_{H8}
    groq gsk_{W52}
    harness pat.{S22}.{W24}.{W20}
    heroku HRKU-AA{S58}
    hubspot pat-na1-{H8}-{H4}-{H4}-{H4}-{H12}
    huggingface hf_{L34}
    huggingface api_org_{L34}
    infracost ico-{W32}
    jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOi{W20}.{S43}
    linear lin_api_{W40}
    linear lin_oauth_{H64}
    mailchimp {H32}-us12
    mailgun key-{H32}
    mapbox sk.eyJ1Ijoi{W60}.{S22}
    maxmind {W6}_{W29}_mmk
    netlify nfp_{W40}
    newrelic NRAK-{U27}
    newrelic NRII-{S32}
    newrelic {H36}FFFFNRAL
    notion ntn_{D11}{W35}
    notion secret_{W43}
    npm npm_{W36}
    nuget oy2{l43}
    nvidia nvapi-{S64}
    octopus API-{U26}
    openai sk-{W20}T3BlbkFJ{W20}
    openai sk-proj-{S74}T3BlbkFJ{S74}
    openai sk-svcacct-{S74}T3BlbkFJ{S74}
    openai sk-proj-{W48}
    openweather https://api.host.org/x?q=1&appid={H32}
    planet PLAK{H32}
    openrouter sk-or-v1-{H64}
    openshift sha256~{S43}
    perplexity pplx-{W48}
    plaid access-sandbox-{H8}-{H4}-{H4}-{H4}-{H12}
    planetscale pscale_tkn_{S43}
    planetscale pscale_pw_{S43}
    postman PMAK-{H24}-{H34}
    posthog phx_{W43}
    prefect pnu_{W36}
    pulumi pul-{H40}
    pypi pypi-AgEIcHlwaS5vcmc{S100}
    readme rdme_{l70}
    replicate r8_{W37}
    resend re_{W8}_{W24}
    rubygems rubygems_{H48}
    salesforce 00D{W12}!{W90}
    sendgrid SG.{S22}.{S43}
    sentry sntrys_{P120}_{P43}
    sentry sntryu_{H64}
    shippo shippo_live_{H40}
    shopify shpat_{H32}
    shopify shpca_{H32}
    shopify shppa_{H32}
    shopify shpss_{H32}
    slack xoxb-{D12}-{D13}-{W24}
    slack xoxp-{D12}-{D12}-{D12}-{H32}
    slack xoxa-2-{W40}
    slack xapp-1-A{U10}-{D13}-{H64}
    slack xoxe.xoxp-1-{W160}
    slack https://hooks.slack.com/services/T{U8}/B{U8}/{W24}
    sonar squ_{H40}
    sourcegraph sgp_{H16}_{H40}
    square sq0atp-{S22}
    square sq0csp-{S43}
    square EAAA{S60}
    stripe sk_live_{W24}
    stripe rk_live_{W24}
    stripe sk_test_{W24}
    stripe sk_live_{W99}
    stripe whsec_{W32}
    supabase sbp_{H40}
    tailscale tskey-auth-{W16}-{W32}
    teams https://x.webhook.office.com/webhookb2/{H8}-{H4}-{H4}-{H4}-{H12}@{H8}-{H4}-{H4}-{H4}-{H12}/IncomingWebhook/{H32}/{H8}-{H4}-{H4}-{H4}-{H12}
    telegram {D10}:AA{S33}
    tencent AKID{W32}
    terraform {W14}.atlasv1.{S67}
    twilio AC{H32}
    twilio SK{H32}
    typeform tfp_{S59}
    vault hvs.{S95}
    vault hvb.{S150}
    vercel vcp_{W24}
    wakatime waka_{H8}-{H4}-4{H3}-a{H3}-{H12}
    wandb wandb_v1_{W77}
    yandex AQVN{S36}
    adobe p8e-{W32}
    clickup pk_{D8}_{U32}
    elastic essu_{P60}
    mailersend mlsn.{H64}
    render rnd_{W28}
    together tgp_v1_{S43}
"""
"""A vendor, and the shape of one of its tokens, by its documentation and by the rules of gitleaks (MIT)."""

WRAPPINGS = {
    "a literal": 'const char* value = "@";',
    "a call": 'auto client = Client("@");',
    "a call in a condition": 'if (x == f("@")) return;',
    "a subscript": 'auto it = table["@"];',
    "a ternary": 'auto v = c ? f("@") : g("b");',
    "a lambda": 'auto make = [] { return std::string{"@"}; };',
    "a macro": '#define CREDENTIAL f(L"@")',
    "a table": '    {"name", 3, "@", nullptr},',
    "a comment": "// see @ for details",
    "a block comment": "/* @ */ int x;",
    "a raw string": 'auto r = R"x({"id": "@"})x";',
    "an escape before": 'puts("line\\n@\\n");',
    "a format before": 'printf("%s@%d\\n", a, b);',
    "an escaped quote": 'auto j = "{\\"t\\":\\"@\\"}";',
    "a waiver of a tool": 'auto w = "@"; // pragma: allowlist secret',
    "an id": 'request_id = "@";',
    "a URL": 'fetch("https://host.org/x?a=1&t=@&b=2");',
    "a wide literal": 'std::wstring w = L"@";',
    "a UTF-8 literal": 'auto u = u8"@"sv;',
    "a header": 'add("X-Header: @\\r\\n");',
}
"""Lines around a token, which stands for `@`."""


@dataclass(frozen=True)
class LabeledLine:
    """Lines of code, and the parts of them that no scrubbed text may have. A look-alike has none: it must not change."""

    kind: str
    text: str
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Token:
    """A token, and where its longest random part is: what stands around that may be the address of a service."""

    text: str
    start: int
    end: int

    @classmethod
    def made(cls, template: str, generator: random.Random) -> "Token":
        """Return a template with its random parts."""
        text, longest = "", (0, 0)
        for fixed, alphabet, count in _PART.findall(template + "{D0}"):
            text += fixed
            start = len(text)
            text += "".join(generator.choices(ALPHABETS[alphabet], k=int(count)))
            longest = max(longest, (start, len(text)), key=lambda span: span[1] - span[0])
        return cls(text, *longest)

    @property
    def random_part(self) -> str:
        return self.text[self.start : self.end]


def tokens(seed: int) -> Iterator[LabeledLine]:
    """Yield a token of every shape, each in three wrappings; over all shapes, all wrappings occur."""
    generator = random.Random(seed)
    wrappings = list(WRAPPINGS.items())
    for index, line in enumerate(TOKENS.strip().splitlines()):
        vendor, template = line.split()
        for number in range(3):
            name, wrapping = wrappings[(index * 3 + number) % len(wrappings)]
            token = Token.made(template, generator)
            yield LabeledLine(f"{vendor} in {name}", wrapping.replace("@", token.text), (token.random_part,))


DIVISIONS = {
    "side by side": 'auto v = "@" "@";',
    "with a comment between": 'auto v = "@" /* and */ "@";',
    "over lines": 'auto v = "@"  // and\n         "@";',
    "of two prefixes": 'auto v = u8"@" u8"@";',
    "added": 'auto v = std::string("@" + "@");',
    "raw": 'auto v = R"(@)" R"(@)";',
    "by an empty literal": 'auto v = "@""""@";',
    "on a stream": 'o << "@" << "@";',
    "over lines of a comment": "/* @\n * @ */ int x;",
    "by a character without width": "// @\u200b@ is old",
    "by a line continuation": '#define V "@\\\n@"',
}
"""Lines around the two parts of a token."""

_MIN_PART = 2


def divided_tokens(seed: int) -> Iterator[LabeledLine]:
    """Yield a token of every shape in two parts, or with an escape for one character, or as characters."""
    generator = random.Random(seed)
    divisions = list(DIVISIONS.items())
    for index, line in enumerate(TOKENS.strip().splitlines()):
        vendor, template = line.split()
        token = Token.made(template, generator)
        place = generator.randrange(token.start + _MIN_PART, token.end - _MIN_PART)
        first, second = token.text[:place], token.text[place:]
        parts = (token.text[token.start : place], token.text[place + 1 : token.end])
        name, division = divisions[index % len(divisions)]
        yield LabeledLine(f"{vendor} {name}", second.join(division.replace("@", first, 1).rsplit("@", 1)), parts)
        character = ord(token.text[place])
        for escape in (f"\\x{character:02x}", f"\\{character:03o}", f"\\u{character:04X}"):
            yield LabeledLine(f"{vendor} with {escape}", f'auto v = "{first}{escape}{second[1:]}";', parts)
        initializer = ", ".join(f"'{each}'" for each in token.text)
        part = ", ".join(f"'{each}'" for each in token.random_part)
        yield LabeledLine(f"{vendor} as characters", f"char v[] = {{{initializer}, 0}};", (part[:-3],))
