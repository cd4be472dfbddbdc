"""Token shapes: what the tokens of each vendor look like, by the prefixes and lengths that vendors publish.

To add one, add its line to TOKEN_SHAPES. `head` is the part by which a token is found, at least three fixed characters of it;
`body` is the random part, which must look random. Lengths are lower than the published ones where vendors have changed them.

Sources: the vendors' documentation; the formats of GitHub's and GitLab's secret scanning.
"""

from dataclasses import dataclass

_WORD = "[A-Za-z0-9]"
_LOWER = "[a-z0-9]"
_UPPER = "[A-Z0-9]"
_HEX = "[0-9a-f]"
_ANY_HEX = "[0-9a-fA-F]"
_URL_SAFE = "[A-Za-z0-9_-]"
_BASE64 = "[A-Za-z0-9+/]"
_BASE64_PADDED = "[A-Za-z0-9+/=_-]"
_UUID = rf"{_ANY_HEX}{{8}}-(?:{_ANY_HEX}{{4}}-){{3}}{_ANY_HEX}{{12}}"


@dataclass(frozen=True)
class TokenShape:
    """Tokens of a vendor: `head` and `body` are expressions without groups.

    `is_word`: the token is alone, with no letter or digit beside it, because its head is short or could be part of a word.
    `before` is an expression of what is before the head, for tokens that end in their fixed part: searching forward for the
    random part would be slow.
    `is_certain`: the head is of tokens alone, so that a body that repeats itself is one too.
    `is_named`: the head is the name of the token or the address of its service, and stays.
    `other_half` is an expression of the secret of a token that is the name of an account: it stands within a few lines of it.
    """

    vendor: str
    head: str
    body: str
    is_word: bool = False
    is_certain: bool = False
    is_named: bool = False
    before: str = ""
    other_half: str = ""


def _word(vendor: str, head: str, body: str, before: str = "", other_half: str = "") -> TokenShape:
    return TokenShape(vendor, head, body, is_word=True, before=before, other_half=other_half)


def _named(vendor: str, head: str, body: str) -> TokenShape:
    return TokenShape(vendor, head, body, is_named=True)


TOKEN_SHAPES = (
    _word("1Password", "A3-", rf"{_UPPER}{{6}}-(?:{_UPPER}{{11}}|{_UPPER}{{6}}-{_UPPER}{{5}})(?:-{_UPPER}{{5}}){{3}}"),
    TokenShape("1Password", "ops_eyJ", rf"{_BASE64_PADDED}{{60,2000}}"),
    _word("Adafruit", "aio_", rf"{_WORD}{{28}}"),
    TokenShape("Adobe", "p8e-", rf"{_WORD}{{32}}"),
    TokenShape("age", "AGE-SECRET-KEY-(?:PQ-)?1", r"[0-9A-Z]{58,2000}", is_certain=True),
    _word("Airtable", rf"pat{_WORD}{{14}}\.", rf"{_HEX}{{64}}"),
    _word("Alibaba", "LTAI", rf"{_WORD}{{12,24}}", other_half=rf"{_WORD}{{30}}"),
    TokenShape("Anthropic", "sk-ant-", rf"(?:[a-z]{{2,8}}[0-9]{{2}}-)?{_URL_SAFE}{{24,200}}"),
    TokenShape("Apify", "apify_api_", rf"{_WORD}{{30,60}}"),
    _word("Artifactory", "AKC[a-zA-Z0-9]", rf"{_WORD}{{9,90}}"),
    _word("Artifactory", "cmVmdGtuO", rf"{_WORD}{{40,80}}"),
    _word("Artifactory", "cmVmd", rf"{_WORD}{{59}}"),
    _word("Asana", r"[12]/[0-9]{10,20}(?:/[0-9]{10,20})?:", rf"{_HEX}{{32}}"),
    TokenShape("Atlassian", "(?i:AT[AC]TT3)", rf"{_BASE64_PADDED}{{40,260}}"),
    TokenShape(
        "Authress",
        "(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}[.][A-Za-z0-9]{4,6}[.]acc[_-]",
        r"[A-Za-z0-9+/_=.-]{40,200}",
    ),
    _word("AWS", "(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])", rf"{_UPPER}{{16}}", other_half=rf"{_BASE64}{{40}}"),
    TokenShape("AWS", "ABSK", rf"{_BASE64}{{100,280}}={{0,2}}"),
    _named("AWS", "bedrock-api-key-", rf"{_BASE64_PADDED}{{20,2000}}"),
    TokenShape("AWS", "amzn[.]mws[.]", _UUID),
    TokenShape("AWS", "da2-", rf"{_LOWER}{{26}}"),
    _named("Azure", "(?:AccountKey|SharedAccessKey|account_key)=", rf"{_BASE64}{{42,88}}={{0,2}}"),
    _named("Azure", "[?&]sig=", r"[A-Za-z0-9%+/_-]{40,80}(?:=|%3D)?"),
    TokenShape("Azure", "[0-9]Q~", "[A-Za-z0-9_.~-]{31,34}", before="[A-Za-z0-9_.~-]{3}"),
    TokenShape("Axiom", "xa[aip]t-", _UUID),
    TokenShape("Azure", "AzCa", rf"{_BASE64}{{20,60}}"),
    _word("Azure DevOps", "AZDO", rf"{_WORD}{{4}}", before=rf"{_WORD}{{60,76}}"),
    TokenShape("Bitbucket", "ATBB", rf"{_WORD}{{24,40}}"),
    TokenShape("Brevo", "xkeysib-", rf"{_HEX}{{64}}-{_WORD}{{16}}"),
    TokenShape("Brevo", "xsmtpsib-", rf"{_HEX}{{64}}-{_WORD}{{16}}"),
    TokenShape("Buildkite", "bkua_", rf"{_HEX}{{40}}"),
    TokenShape("Canva", "cnvca", rf"{_URL_SAFE}{{30,90}}"),
    TokenShape("CircleCI", "CCIP(?:AT|RJ)_", rf"{_WORD}{{10,40}}_{_HEX}{{40}}"),
    _word("ClickHouse", "4b1d", rf"{_WORD}{{38}}"),
    TokenShape("Clojars", "(?i:CLOJARS_)", rf"{_WORD}{{60}}"),
    _word("ClickUp", "pk_[0-9]{5,12}_", rf"{_UPPER}{{32}}"),
    TokenShape("Cloudflare", r"v1\.0-", rf"{_HEX}{{24}}-{_HEX}{{100,200}}"),
    _word("Cloudflare", "cf(?:at|k|oat|ut)_[A-Za-z0-9]{8}", rf"{_WORD}{{32,60}}"),
    _word("Cerebras", "csk-", rf"{_LOWER}{{40,60}}"),
    _named("Cloudinary", "cloudinary://", rf"[0-9]{{10,20}}:{_URL_SAFE}{{20,40}}"),
    TokenShape("Contentful", "CFPAT-", rf"{_URL_SAFE}{{43}}"),
    _word("crates.io", "cio", rf"{_WORD}{{32}}"),
    TokenShape("Databricks", "(?:dapi|dkea|dose|dsapi)", rf"{_HEX}{{32,40}}(?:-[0-9])?", is_word=True),
    _word("Deno", "dd[opw]_[A-Za-z0-9]{8}", rf"{_WORD}{{28}}"),
    TokenShape("Dependency-Track", "odt_", rf"{_WORD}{{32,64}}"),
    TokenShape("DigitalOcean", "(?i:do[oprt]_v1_)", rf"{_ANY_HEX}{{64}}"),
    _word(
        "Discord",
        rf"\.{_URL_SAFE}{{6}}\.{_URL_SAFE}{{16}}",
        rf"{_URL_SAFE}{{11,22}}",
        before=rf"[MNO]{_URL_SAFE}{{22,27}}",
    ),
    _named("Discord", r"discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/[0-9]{10,22}/", rf"{_URL_SAFE}{{40,90}}"),
    TokenShape("Docker", "dckr_[a-z]{2,4}_", rf"{_URL_SAFE}{{20,60}}"),
    TokenShape("Doppler", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?", rf"{_WORD}{{40,44}}"),
    _word("Dropbox", r"sl\.(?:u\.)?[A-Za-z0-9_-]{8}", rf"{_URL_SAFE}{{52,1500}}=?"),
    TokenShape(
        "Dropbox",
        "A{10}",
        r"[A-Za-z0-9_=-]{43}",
        is_word=True,
        is_certain=True,
        before=r"(?<![A-Za-z0-9+/])[A-Za-z0-9]{11}",
    ),
    TokenShape("Duffel", "duffel_(?:test|live)_", r"[A-Za-z0-9_=-]{40,50}", is_certain=True),
    TokenShape("Dynatrace", r"dt0[a-z][0-9]{2}\.[A-Za-z0-9]{8,24}\.", rf"{_WORD}{{64}}", is_certain=True),
    _word("Elastic", "essu_", rf"{_BASE64}{{40,200}}={{0,2}}"),
    _word("E2B", "e2b_", rf"{_HEX}{{40}}"),
    TokenShape("EasyPost", "EZ[AT]K", rf"{_WORD}{{54}}", is_word=True),
    _word("ElevenLabs", "sk_[0-9a-f]{8}", rf"{_HEX}{{40}}"),
    TokenShape("Facebook", "EAA[A-Z][A-Za-z0-9]", rf"{_WORD}{{60,400}}", is_word=True),
    _word("Facebook", rf"[0-9](?:\||%7C|%){_URL_SAFE}{{16}}", rf"{_URL_SAFE}{{11,24}}", before="[0-9]{14,15}"),
    TokenShape("Figma", "fig[dopur]{1,2}_", rf"{_URL_SAFE}{{36,60}}"),
    TokenShape("Flutterwave", "FLW(?:SECK|PUBK)(?:_TEST)?-", rf"{_WORD}{{12,40}}(?:-X)?"),
    _word("Fly.io", "fo1_", rf"{_URL_SAFE}{{43}}"),
    _word("Fly.io", "fm[12][ar]?_", rf"{_BASE64}{{60,2000}}={{0,3}}"),
    TokenShape("Frame.io", "fio-u-", rf"{_BASE64_PADDED}{{60,70}}"),
    TokenShape("GitHub", "gh[opru]_", rf"{_WORD}{{36,255}}"),
    TokenShape("GitHub", "ghs_[A-Za-z0-9]{12}", rf"{_WORD}{{24,255}}"),
    TokenShape("GitHub", "github_pat_", r"[A-Za-z0-9_]{50,255}"),
    _word("GitHub", r"v1\.[0-9a-f]{8}", rf"{_HEX}{{32}}"),
    TokenShape(
        "GitLab",
        "gl(?:agent|cbt|dt|ffct|ft|imt|oas|pat|ptt|rt|rtr|soat|wt)-",
        rf"(?:{_WORD}{{1,5}}_)?[A-Za-z0-9_.-]{{20,320}}",
    ),
    TokenShape("GitLab", "GR1348941", rf"{_URL_SAFE}{{20,50}}"),
    _named("GitLab", "_gitlab_session=", rf"{_LOWER}{{32}}"),
    _word("GoCardless", "live_[A-Za-z0-9]{8}", r"[A-Za-z0-9_=-]{32}"),
    TokenShape("Google", "AIza", rf"{_URL_SAFE}{{35}}"),
    TokenShape("Google", "GOCSPX-", rf"{_URL_SAFE}{{24,36}}"),
    TokenShape("Google", r"ya29\.", r"[A-Za-z0-9_./-]{20,2200}"),
    _word("Google", r"1//0", rf"{_URL_SAFE}{{30,150}}"),
    _word("Google", "GOOG[A-Z0-9]", rf"{_UPPER}{{18,60}}"),
    _word("Google reCAPTCHA", "6L[A-Za-z0-9_-]{6}AAAAA", rf"{_URL_SAFE}{{27}}"),
    TokenShape("Grafana", "(?i:glc_)", rf"{_BASE64}{{32,400}}={{0,3}}"),
    TokenShape("Grafana", "(?i:glsa_)", rf"{_WORD}{{32}}_{_ANY_HEX}{{8}}"),
    TokenShape("Grafana", "(?i:eyJrIjoi)", rf"{_BASE64}{{60,400}}={{0,3}}"),
    _word("Groq", "gsk_", rf"{_WORD}{{40,60}}"),
    TokenShape("Harness", "(?:pat|sat)[.][A-Za-z0-9_-]{22}[.][A-Za-z0-9]{24}[.]", rf"{_WORD}{{20}}", is_word=True),
    TokenShape("HashiCorp Terraform", r"\.atlasv1\.", r"[A-Za-z0-9_=-]{60,70}", before=rf"{_WORD}{{14}}"),
    TokenShape("HashiCorp Vault", r"hv[bsr]\.", rf"{_URL_SAFE}{{20,300}}"),
    _word("HashiCorp Vault", r"[sb]\.[A-Za-z0-9]{20}", rf"{_WORD}{{4}}"),
    TokenShape("Heroku", "HRKU-", rf"{_URL_SAFE}{{30,70}}"),
    TokenShape("HubSpot", r"pat-(?:na|eu|ap)[0-9]-", _UUID),
    _word("Hugging Face", "hf_", rf"{_WORD}{{30,60}}"),
    TokenShape("Hugging Face", "api_org_", rf"{_WORD}{{30,60}}"),
    _word("Infracost", "ico-", rf"{_WORD}{{32}}"),
    _word("Infisical", r"st[.][0-9a-f]{24}[.]", rf"{_HEX}{{32}}[.]{_HEX}{{32}}"),
    TokenShape("intra42", "s-s4t2(?:ud|af)-", rf"{_ANY_HEX}{{64}}"),
    _word("Ionic", "ion_[A-Za-z0-9]{16}", rf"{_WORD}{{26}}"),
    TokenShape("Langfuse", "[ps]k-lf-", _UUID),
    TokenShape("LangSmith", "lsv2_(?:pt|sk)_", rf"{_HEX}{{32}}_{_HEX}{{10}}"),
    TokenShape("LaunchDarkly", "(?:sdk|mob|api)-", _UUID, is_word=True),
    _word("Linear", "lin_(?:api|oauth)_", rf"{_WORD}{{32,64}}"),
    _word("Lob", "(?:live|test)_(?:pub_)?[0-9a-f]{8}", rf"{_HEX}{{23,27}}"),
    _word("Mailchimp", "-us[0-9]", "[0-9]?", before=rf"{_LOWER}{{32}}"),
    _word("Mailchimp Mandrill", "md-[A-Za-z0-9]{6}", rf"{_URL_SAFE}{{16}}"),
    TokenShape("MailerSend", r"mlsn\.", rf"{_HEX}{{64}}"),
    _word("Mailgun", "(?:pub)?key-[a-z0-9]{8}", rf"{_LOWER}{{24}}"),
    _word("Mailgun", rf"-{_HEX}{{8}}-", rf"{_HEX}{{8}}", before=rf"{_HEX}{{32}}"),
    _word("Mapbox", r"[ps]k\.eyJ", rf"{_URL_SAFE}{{40,200}}\.{_URL_SAFE}{{20,50}}"),
    _word("MaxMind", "_mmk", "", before=rf"{_WORD}{{6}}_{_WORD}{{29}}"),
    TokenShape("Mercado Pago", "APP_USR-", rf"[0-9]{{10,20}}-[0-9]{{4,8}}-{_HEX}{{32}}(?:-[0-9]{{5,12}})?"),
    _named(
        "Microsoft Teams",
        r"webhook\.office\.com/webhookb2/",
        r"[a-z0-9@-]{60,90}/IncomingWebhook/[a-z0-9]{32}/[a-z0-9-]{36,48}",
    ),
    _word("Neon", "napi_", rf"{_LOWER}{{50,80}}"),
    _word("Netlify", "nf[bcpu]_", rf"{_URL_SAFE}{{36,60}}"),
    _word("Netlify", "nfo_[A-Za-z0-9]{8}", rf"{_URL_SAFE}{{28,52}}"),
    TokenShape("New Relic", "NR(?:AK|AL|AA|BR|II|IQ|JS|RA|SP)-", r"[A-Za-z0-9_-]{19,60}"),
    _word("New Relic", "NRAL", "", before=rf"{_HEX}{{36}}(?:FFFF)?"),
    TokenShape("Notion", "ntn_", rf"{_WORD}{{40,60}}"),
    _word("Notion", "secret_[A-Za-z0-9]{8}", rf"{_WORD}{{32,42}}"),
    TokenShape("npm", "(?i:npm_)", rf"{_WORD}{{36,60}}"),
    _named("npm", "_auth(?:Token)?\\s?=\\s?\\\\?[\"']?", rf"{_BASE64}{{12,300}}={{0,2}}"),
    _word("NuGet", "oy2", rf"{_LOWER}{{43}}"),
    TokenShape("NVIDIA", "nvapi-", rf"{_URL_SAFE}{{40,80}}"),
    _word("Octopus Deploy", "API-[A-Z0-9]{12}", rf"{_UPPER}{{14,24}}"),
    TokenShape("OpenAI", "sk-(?:proj|svcacct|admin|None|service)-", rf"{_URL_SAFE}{{20,250}}"),
    _word("OpenAI", "sk-[A-Za-z0-9]{8}", rf"{_WORD}{{12,120}}"),
    TokenShape("OpenAI", "sess-", rf"{_WORD}{{40}}", is_word=True),
    TokenShape("OpenRouter", "sk-or-v1-", rf"{_HEX}{{64}}"),
    TokenShape("OpenShift", "sha256~", rf"{_URL_SAFE}{{43}}"),
    TokenShape("Paddle", "pdl_(?:live|sdbx)_apikey_", r"[A-Za-z0-9_]{40,80}"),
    _named("PayPal", r"access_token\$(?:production|sandbox)\$", rf"{_LOWER}{{16}}\${_HEX}{{32}}"),
    TokenShape("Perplexity", "pplx-", rf"{_WORD}{{40,60}}"),
    _word("Pinecone", "pcsk_", r"[A-Za-z0-9_]{50,90}"),
    TokenShape("Plaid", "access-(?:sandbox|development|production)-", _UUID),
    TokenShape("PlanetScale", "(?i:pscale_[a-z]{2,8}_)", r"[A-Za-z0-9_=.-]{32,64}"),
    TokenShape("Polar", "polar_[a-z]{2,4}_", rf"{_WORD}{{40,60}}"),
    TokenShape("Postman", "PMA[KT]-", rf"{_WORD}{{20,26}}(?:-{_WORD}{{30,36}})?"),
    _word("PostHog", "ph[csx]_", rf"{_WORD}{{36,50}}"),
    _word("Prefect", "pn[ub]_", rf"{_WORD}{{36}}"),
    _word("Pulumi", "pul-[0-9a-f]{8}", rf"{_HEX}{{32}}"),
    TokenShape("PyPI", "pypi-", rf"{_URL_SAFE}{{60,1000}}"),
    _word("Razorpay", "rzp_(?:live|test)_", rf"{_WORD}{{14}}", other_half=rf"{_WORD}{{24}}"),
    TokenShape("ReadMe", "rdme_", rf"{_LOWER}{{70}}"),
    _word("Render", "rnd_", rf"{_WORD}{{28,40}}"),
    _word("Replicate", "r8_", rf"{_WORD}{{37}}"),
    _word("Resend", "re_[A-Za-z0-9]{8}_", rf"{_WORD}{{24}}"),
    TokenShape("RubyGems", "rubygems_", rf"{_HEX}{{48}}"),
    TokenShape("Salesforce", "00D[A-Za-z0-9]{12,15}!", r"[A-Za-z0-9_.]{60,130}", is_word=True),
    _word("Scaleway", "SCW[A-Z0-9]", rf"{_UPPER}{{16}}"),
    TokenShape("Scalingo", "tk-us-", rf"{_URL_SAFE}{{48}}"),
    _word("Segment", "sgp_", rf"{_WORD}{{40,80}}"),
    TokenShape("SendGrid", r"SG\.[A-Za-z0-9_-]{16,26}\.", rf"{_URL_SAFE}{{30,60}}"),
    _word("SendGrid", r"SG\.[A-Za-z0-9=_.-]{8}", r"[A-Za-z0-9=_.-]{58}"),
    TokenShape("Sentry", "sntrys_", r"[A-Za-z0-9+/=_-]{40,500}"),
    TokenShape("Sentry", "sntry[au]_", rf"{_HEX}{{64}}"),
    TokenShape(
        "Sentry", r"://[0-9a-f]{32}(?::[0-9a-f]{32})?@[a-z0-9.-]{0,60}(?:sentry|ingest)[a-z0-9.-]{0,60}/", "[0-9]{1,20}"
    ),
    _word("SettleMint", "sm_[aps]at_", rf"{_WORD}{{16}}"),
    TokenShape("Shippo", "shippo_(?:live|test)_", rf"{_ANY_HEX}{{40}}"),
    TokenShape("Shopify", "shp(?:at|ca|pa|ss|tka|ua)_", rf"{_ANY_HEX}{{32}}"),
    TokenShape("Slack", "xox[a-z]-", r"[A-Za-z0-9-]{12,260}", is_certain=True),
    TokenShape("Slack", r"(?i:xoxe\.xox[bp])-", r"[A-Za-z0-9-]{20,260}"),
    TokenShape("Slack", "(?i:xoxe)-[0-9]-", rf"{_WORD}{{140,260}}"),
    _word("Slack", "xox[abepr]-", r"(?:[0-9]-)?(?![a-z-]{8,48}(?![A-Za-z0-9-]))[A-Za-z0-9-]{8,12}"),
    TokenShape("Slack", "(?i:xapp)-[0-9]-", r"[A-Za-z0-9]{1,40}-[0-9]{1,40}-[A-Za-z0-9]{1,100}", is_certain=True),
    _named("Slack", r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/", r"[A-Za-z0-9_/+]{20,90}"),
    _named("Sidekiq", "://[0-9a-fA-F]{8}:", r"[0-9a-fA-F]{8}(?=@(?i:gems|enterprise)[.](?i:contribsys[.]com))"),
    TokenShape("Snyk", "snyk_[a-z]{2,4}[.]", r"[A-Za-z0-9_.-]{40,120}"),
    _word("Sonar", "sq[apu]_", rf"{_HEX}{{40}}"),
    TokenShape("Sourcegraph", "(?i:sgp_(?:[a-f0-9]{16}_|local_)?)", rf"{_ANY_HEX}{{40}}"),
    TokenShape("Sourcegraph", "slk_", rf"{_HEX}{{64}}"),
    TokenShape("Square", "sq0[a-z]{3}-", rf"{_URL_SAFE}{{22,60}}"),
    _word("Square", "EAAA", rf"{_URL_SAFE}{{22,64}}"),
    _word("Stripe", "[rs]k_(?:live|test|prod)_", rf"{_WORD}{{10,250}}"),
    TokenShape("Stripe", "pk_live_", rf"{_WORD}{{24,250}}"),
    TokenShape("Stripe", "whsec_", rf"{_BASE64}{{24,80}}={{0,2}}"),
    _word("Supabase", "sb[a-z]_(?:secret_|oauth_|v0_)?", rf"{_WORD}{{30,60}}"),
    TokenShape("Supabase", "sb_secret_", rf"{_URL_SAFE}{{20,60}}"),
    TokenShape("Tailscale", "tskey-(?:[a-z]{3,12}-)?", r"[A-Za-z0-9-]{16,80}"),
    TokenShape("Tavily", "tvly-(?:dev-|prod-)?", rf"{_WORD}{{28,50}}"),
    _word("Telegram", rf"[0-9]:{_URL_SAFE}{{20}}", rf"{_URL_SAFE}{{15}}", before="(?:bot)?[0-9]{7,9}"),
    _word("Telegram", rf"[0-9]:A{_URL_SAFE}{{20}}", rf"{_URL_SAFE}{{14}}", before="(?:bot)?[0-9]{4,15}"),
    _word("Tencent", "AKID", rf"{_WORD}{{32}}", other_half=rf"{_WORD}{{32}}"),
    TokenShape("Together", "tgp_v1_", rf"{_URL_SAFE}{{40,48}}"),
    _word("Trello", "ATTA", rf"{_WORD}{{60,80}}"),
    _word("Twilio", "(?:AC|SK)[0-9a-fA-F]{8}", rf"{_ANY_HEX}{{24}}"),
    _word("Twitter", "A{20,24}", r"[A-Za-z0-9%]{60,110}"),
    _word("Typeform", "tfp_", r"[A-Za-z0-9_.=-]{40,70}"),
    _word("Vercel", "vc[a-z]_", rf"{_WORD}{{24,60}}"),
    TokenShape("Vercel", "vercel_blob_rw_", r"[A-Za-z0-9_]{30,70}"),
    TokenShape("Volcengine", "AKLT", rf"{_WORD}{{30,50}}", is_word=True),
    _word("WakaTime", "waka_", _UUID),
    TokenShape("Weights & Biases", "wandb_v1_", r"[A-Za-z0-9_]{40,120}", is_certain=True),
    TokenShape("xAI", "xai-[A-Za-z0-9]{8}", rf"{_WORD}{{50,90}}"),
    _word("Yandex", "AQVN", rf"{_URL_SAFE}{{35,38}}"),
    _word("Yandex", "YC[AMNOPQ][A-Za-z0-9_-]", rf"{_URL_SAFE}{{23,40}}"),
    _word("Yandex", r"t1\.[A-Z0-9a-z_-]{10,200}={0,2}\.", rf"{_URL_SAFE}{{86}}={{0,2}}"),
    _named("Zapier", r"hooks\.zapier\.com/hooks/catch/[0-9]{4,10}/", rf"{_WORD}{{6,12}}"),
    TokenShape("Zuplo", "zpka_", r"[A-Za-z0-9_]{40,70}"),
    _word("Confluent", "cflt[A-Za-z0-9+/]{8}", rf"{_BASE64}{{50,60}}"),
    _word("Firebase", ":APA91b", rf"{_URL_SAFE}{{100,200}}", before=rf"AAAA{_URL_SAFE}{{7}}"),
    _named("OpenWeather", "[?&]appid=", rf"{_HEX}{{32}}"),
    _word("Planet", "PLAK[0-9a-f]{8}", rf"{_HEX}{{24}}"),
    # Formats of no single vendor.
    _word("token in base64", "(?:Z2h[vwyz1]X|QUtJQ|QVNJQ|c2tfbGl2ZV|Z2xwYXQt)", rf"{_BASE64}{{20,400}}={{0,2}}"),
    TokenShape(
        "crypt(3)",
        r"[$](?:[156]|2[abxy]?|7|y|gy|md5|sha1|apr1|scrypt|argon2id?)[$]",
        r"[A-Za-z0-9./,=+$-]{20,200}",
        is_named=True,
        before=r"(?<![A-Za-z0-9_.\\-])[A-Za-z_][A-Za-z0-9_.@-]{0,31}:",
    ),
    TokenShape(
        "JSON web token",
        "eyJ[A-Za-z0-9_-]{5}",
        rf"{_URL_SAFE}{{3,600}}\.{_URL_SAFE}{{6,8000}}(?:\.{_URL_SAFE}{{0,8000}}){{0,3}}",
    ),
    _word(
        "JSON web token",
        "ey[A-Za-z0-9]{17}",
        rf"{_WORD}{{0,600}}\.ey[A-Za-z0-9/\\_-]{{15,8000}}\.(?:[A-Za-z0-9/\\_-]{{10,1000}}={{0,2}})?",
    ),
    TokenShape("JSON web token in base64", "ZXlK[A-Za-z0-9]{5}", r"[A-Za-z0-9+/\\_-]{39,8000}={0,2}", is_word=True),
    TokenShape(
        "private key in base64",
        "LS0tLS1CRUdJTi(?:BSU0EgUFJJVk|BQUklWQVRF|BFQyBQUklWQVRF|BPUEVOU1NIIFBSSVZB|BEU0EgUFJJVk|BFTkNSWVBURUQgUFJJVk|BQR1AgUFJJVkFUR)",
        r"[A-Za-z0-9+/]{40,8000}={0,2}",
        is_certain=True,
    ),
    TokenShape(
        "private key in base64",
        "(?:MII[A-Za-z0-9+/]{3}IBADANBgkqhkiG9w0BAQEFAASC|MII[A-Za-z0-9+/]{3}IBAAKC[AQ]|MHcCAQEEI|MIG[HT]AgEAM|MC4CAQAwBQYDK2V|b3BlbnNzaC1rZXktdjE)",
        r"[A-Za-z0-9+/]{20,8000}={0,2}",
        is_certain=True,
    ),
    _named("OAuth 2.0", "(?:refresh|access|id)_token=", r"[A-Za-z0-9_.~+/-]{20,2000}"),
)
"""In the order of vendors. Of two that match at one place, the longer match counts."""
