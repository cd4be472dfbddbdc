"""Secrets for tests, put together when the tests run: the repository and its history hold none of them whole."""

import base64
import json
import random
import string

HEXADECIMAL = "0123456789abcdef"
ALPHANUMERIC = string.ascii_letters + string.digits


def characters(alphabet: str, count: int, seed: int = 7) -> str:
    """`count` characters, always the same, that look random."""
    generator = random.Random(seed)
    return "".join(generator.choice(alphabet) for _ in range(count))


def _token_of_claims() -> str:
    pieces = [{"alg": "HS256", "typ": "JWT"}, {"sub": "1234567890"}]
    encoded = [base64.urlsafe_b64encode(json.dumps(piece).encode()).decode().rstrip("=") for piece in pieces]
    return ".".join([*encoded, characters(ALPHANUMERIC, 43)])


def lines_by_plugin() -> dict[str, list[str]]:
    """For each plugin, lines of C++ on which it reports something."""
    anything = characters(ALPHANUMERIC, 100)
    lower = characters(string.ascii_lowercase + string.digits, 100)
    upper = characters(string.ascii_uppercase + string.digits, 16)
    digits = characters(string.digits, 12)
    hexadecimal = characters(HEXADECIMAL, 100)
    return {
        "ArtifactoryDetector": [f'const char* a = "AK{"C"}{anything[:20]}";', f'  x = "A{"P6"}{anything[:12]}" ;'],
        "AWSKeyDetector": [f"// AK{'IA'}{upper}", f"auto aws_key = '{anything[:40]}';"],
        "AzureStorageKeyDetector": [f'"Endpoint;Account{"Key="}{anything[:86]}==";'],
        "Base64HighEntropyString": [f'static const char token[] = "{anything[:48]}";', f"f('{anything[:30]}+/');"],
        "BasicAuthDetector": [
            f'url = "https://someone{":"}{anything[:9]}@host.org/x";',
            f"// ftp://me{':'}{lower[:5]}@h",
        ],
        "CloudantDetector": [
            f'cloudant_password = "{hexadecimal[:64]}";',
            f"cl_apikey={characters(string.ascii_lowercase, 24)}",
            f"// https://acc{':'}{hexadecimal[:64]}@acc.cloudant.com",
        ],
        "DiscordBotTokenDetector": [f'"M{anything[:23]}.{anything[30:36]}.{anything[40:67]}"'],
        "GitHubTokenDetector": [f'std::string t = "gh{"p_"}{anything[:36]}";', f"// gh{'s_'}{anything[:36]}"],
        "GitLabTokenDetector": [
            f'"gl{"pat-"}{anything[:20]}"',
            f"// GR{'1348941'}{anything[:20]}",
            f'"gl{"cbt-1f_"}{anything[:22]}"',
            f'"gl{"agent-"}{anything[:50]}"',
        ],
        "HexHighEntropyString": [f'key = "{hexadecimal[:32]}";', f"digest = '{hexadecimal[:40].upper()}';"],
        "IbmCloudIamDetector": [f'ibm_cloud_api_key = "{anything[:44]}";', f"  token: {anything[:44]}"],
        "IbmCosHmacDetector": [f'cos_hmac_secret_access_key = "{hexadecimal[:48]}"'],
        "JwtTokenDetector": [f'bearer = "{_token_of_claims()}";'],
        "KeywordDetector": [
            f'std::string password = "hunter {lower[:4]}";',
            f'private_key("{lower[:8]}");',
            f'db_passwd.assign("{lower[:8]}", 8);',
            f'if (API_KEY != "{lower[:10]}") return;',
            f'contraseña_vieja = "{lower[:6]}";',
        ],
        "MailchimpDetector": [f'"{lower[:32]}-us{"12"}"'],
        "NpmDetector": [f'"//registry.npmjs.org/:_auth{"Token="}npm_{anything[:36]}";'],
        "OpenAIDetector": [f'"sk{"-"}{anything[:20]}T3Blbk{"FJ"}{anything[30:50]}"'],
        "PrivateKeyDetector": [f"// -----BEGIN {'RSA PRIVATE'} KEY-----", f'"PuTTY-User-Key{"-File-2"}: ssh-rsa"'],
        "PypiTokenDetector": [f'"pypi-{"AgEIcHlwaS5vcmc"}{anything[:75]}"'],
        "SendGridDetector": [f'"S{"G."}{anything[:22]}.{anything[30:73]}"'],
        "SlackDetector": [
            f'"xox{"b-"}{digits}-{digits}-{lower[:24]}"',
            f'"https://hooks.slack.com/{"services"}/T{anything[:8]}/B{anything[:8]}/{anything[:24]}"',
        ],
        "SoftlayerDetector": [
            f'softlayer_api_key = "{lower[:64]}";',
            f'"https://api.softlayer.com/soap/{"v3"}/{lower[:64]}"',
        ],
        "SquareOAuthDetector": [f'"sq0{"csp-"}{anything[:43]}"'],
        "StripeDetector": [f'"sk_{"live_"}{anything[:24]}"', f"// rk_{'live_'}{anything[:24]}"],
        "TelegramBotTokenDetector": [f'"{digits[:9]}{":"}{anything[:35]}"'],
        "TwilioKeyDetector": [f'"A{"C"}{lower[:32]}"', f'"S{"K"}{lower[:32]}"'],
    }


def key_block(label: str = "RSA PRIVATE KEY", num_lines: int = 4) -> list[str]:
    """Return the lines of a PEM block, whose content is not a key."""
    body = [characters(ALPHANUMERIC + "+/", 64, seed) for seed in range(num_lines)]
    return [f"-----BEG{'IN'} {label}-----", *body, characters(ALPHANUMERIC, 22) + "==", f"-----E{'ND'} {label}-----"]
