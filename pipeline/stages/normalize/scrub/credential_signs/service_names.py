"""Service names: whether the name of a variable, a field or an option is that of a service's credential.

The credentials of many services have no shape of their own: 32 digits, a UUID, sixteen letters. The name of the service beside
one says what it is. Services whose name is a word of English or of programming count only with a word of credentials.

Sources: the services' own documentation of their keys, and the names of their environment variables.
"""

import re
from enum import IntEnum
from functools import lru_cache

_OWN_NAMES = """
    adafruit airtable algolia alibaba aliyun amplitude anthropic apify appveyor artifactory asana atlassian backblaze bamboohr
    bitbucket bitfinex bitly bittrex braintree brevo bugsnag buildkite circleci cloudflare cloudinary codacy codecov cohere
    bintray clickup coapikey confluence dnkey mailersend newyorktimes privateai
    coinbase confluent contentful contribsys crowdin databricks datadog deepl deepseek digitalocean docusign dropbox droneci
    dynatrace etsy fastly figma finicity finnhub flickr freshbooks freshdesk gitter gocardless godaddy grafana heroku
    honeycomb hubspot huggingface infracost instagram ipinfo ipstack jfrog kucoin launchdarkly linkedin linode logdna
    loggly mailchimp mailgun mailjet mapbox mattermost maxmind meraki messagebird mixpanel mongodb netlify newrelic ngrok nytimes
    okta onesignal openai opsgenie openweather openweathermap pagerduty paypal paystack perplexity pinecone planetscale
    postmark posthog pulumi rapidapi razorpay recaptcha rollbar rubygems salesforce sendbird sendgrid sendinblue sengrid
    shopify sidekiq snyk sonarcloud sonarqube sourcegraph spotify squarespace stackhawk strava sumologic supabase tailscale
    telegram tiktok travisci trello twilio twitch twitter typeform unsplash vonage nexmo vultr wakatime weatherapi webflow
    whatsapp wistia yandex youtube zapier zendesk zoho
"""
_WORDS_TOO = """
    adobe amazon amplify aws azure beamer clearbit clerk cisco discord docker doppler drone duffel elastic facebook
    firebase flutterwave frameio fullstory gcp ghost github gitlab google groq harness intercom jenkins jira jwt kraken
    kubernetes linear lob looker mistral monday mux notion npm nuget octopus plaid postman prefect pusher quay render
    replicate scalingo segment sentry shippo slack snowflake sonar splunk square stripe sumo terraform together travis
    vault vercel xray xero zoom auth0 elevenlabs steam ebay uber lyft reddit pinterest tumblr dockerhub hetzner scaleway scw ovh
"""
_OWN = frozenset(_OWN_NAMES.split())
_COMMON = frozenset(_WORDS_TOO.split())
_CREDENTIAL_WORDS = """
    key keys token tokens tok secret secrets password passwords passwd pwd pass auth credential credentials cred creds login
    pat jwt bearer apikey authtoken accesstoken accesskey secretkey clientsecret clientid appkey appid accessid apitoken privatekey
    webhook dsn
"""
_CREDENTIAL = frozenset(_CREDENTIAL_WORDS.split())
_WEAK_WORDS = """
    api access client app consumer account id user bot license licence project team service admin
"""
_WEAK = frozenset(_WEAK_WORDS.split())
_DIGEST_WORDS = """
    hash hashes hashed digest digests sha sha1 sha256 sha512 md md2 md4 md5 checksum checksums crc cksum sum fingerprint
    commit revision rev guid uuid clsid iid etag expected vector vectors
"""
_DIGEST = frozenset(_DIGEST_WORDS.split())
"""Words of what a value is computed from or counted by: it is no credential, whatever else the name says."""
_OTHER_WORDS = """
    version url uri path paths
    file files filename host hostname endpoint region email mail color colour date time timestamp model tag branch label title
    size length len count num index type kind format prefix suffix pattern regex chars alphabet hint error field
    column header name names public pub env var variable test fixture icon image png
"""
_OTHER = frozenset(_OTHER_WORDS.split())
"""Words of what is no credential, unless a word of credentials follows: a name is what its last word says."""
_TAIL_WORDS = "am api app apps bot sdk ads ci dev inc io hq logic com cloud oauth"
_TAILS = frozenset(_TAIL_WORDS.split())
"""Ends of the name of a service, without a sign between."""
_BEFORE_ALONE = frozenset(["my", "the", "our", "k", "m", "g", "s"])
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_DIGEST_OF = re.compile(
    r"(?i)(?:md[245]|sha-?[0-9]{0,3}|crc-?[0-9]{0,2}|hash(?:es)?|digest|checksum|fingerprint)\w{0,12}"
    r"[ (]{1,3}(?:of |the |a ){0,2}\Z"
)


class ServiceName(IntEnum):
    """Meaning of a name: OF_SERVICE of a value of a service, OF_CREDENTIAL of a key, a token or an identifier of it."""

    NONE = 0
    OF_SERVICE = 1
    OF_CREDENTIAL = 2


def service_expression() -> str:
    """Return an expression of which every such name has a part, in any case; words of two parts may be divided."""
    divided = {
        "coapikey": "co_api_key",
        "linkedin": "linked[-_]?in",
        "newrelic": "new[-_. ]?relic",
        "newyorktimes": "new[-_]?york[-_]?times",
        "privateai": "private[-_]?ai",
        "launchdarkly": "launch[-_.]?darkly",
        "huggingface": "hugging[-_.]?face",
        "messagebird": "message[-_.]?bird",
    }
    return "|".join(divided.get(name, name) for name in sorted(_OWN | _COMMON))


@lru_cache(maxsize=4096)
def service_name(name: str) -> ServiceName:
    """Return what a name says."""
    words = [word.lower() for word in _WORD.findall(name)]
    joined = "".join(words)
    if not _DIGEST.isdisjoint(words):
        return ServiceName.NONE
    is_own = any(service in joined for service in _OWN)
    is_common = any(word in _COMMON or _is_joined(word) for word in words) or joined in _COMMON
    if not is_own and not is_common:
        return ServiceName.NONE
    credentials = [place for place, word in enumerate(words) if word in _CREDENTIAL or _ends_in_credential(word)]
    if not _OTHER.isdisjoint(words[credentials[-1] + 1 :] if credentials else words):
        return ServiceName.NONE
    if credentials:
        return ServiceName.OF_CREDENTIAL
    if is_own:
        return ServiceName.OF_CREDENTIAL if any(word in _WEAK for word in words) else ServiceName.OF_SERVICE
    num_weak = len(_WEAK & set(words))
    return (ServiceName.NONE, ServiceName.OF_SERVICE, ServiceName.OF_CREDENTIAL)[min(num_weak, 2)]


def is_service_alone(name: str) -> bool:
    """Return whether a name is that of a service, with nothing beside it that could say what else a value is."""
    words = [word.lower() for word in _WORD.findall(name)]
    while words and words[0] in _BEFORE_ALONE:
        del words[0]
    joined = "".join(words)
    return any(
        joined == service or (joined.startswith(service) and joined[len(service) :] in _TAILS) for service in _OWN
    )


def is_digest_of(before: str) -> bool:
    """Return whether the words before a name say that a value is a digest of what it names."""
    return _DIGEST_OF.search(before) is not None


def _is_joined(word: str) -> bool:
    """Return whether a word is a service and a word of credentials, or a tail, without a character between them."""
    return any(word.startswith(service) and word[len(service) :] in _CREDENTIAL | _TAILS for service in _COMMON)


def _ends_in_credential(word: str) -> bool:
    return word.endswith(("key", "token", "secret", "password", "apikey"))
