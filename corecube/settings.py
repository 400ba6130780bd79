"""CoreCube's settings. The environment is read here and nowhere else; `docs/configuration.md` lists it."""

import os
from pathlib import Path
from typing import Any, Final

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from corecube.defaults import file_queue, folder_roots, secret_key
from corecube.env import (
    env_bool,
    env_choice,
    env_float,
    env_folder_name,
    env_folders,
    env_identifier,
    env_int,
    env_list,
    env_networks,
    env_path,
    env_secret,
    env_str,
    env_token,
    env_url,
    usable_folder,
)
from corecube.private import make_private, write_privately
from corecube.process import cores

# onnxruntime collects telemetry in the home folder from its import on; nothing of a search is anybody else's.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

write_privately()
BASE_DIR: Final = Path(__file__).resolve().parent.parent
CORECUBE_VAR_DIR: Final = usable_folder(env_path("CORECUBE_VAR_DIR", BASE_DIR / "var"))
# It keeps others from what lies below too, also where an earlier release left that open.
make_private(CORECUBE_VAR_DIR)
CORECUBE_POSTGRES_DIR: Final = CORECUBE_VAR_DIR / "postgres"
CORECUBE_MODELS_DIR: Final = CORECUBE_VAR_DIR / "models"
#: Scripts that were downloaded: `manage.py fetch_charts`.
CORECUBE_SCRIPTS_DIR: Final = usable_folder(CORECUBE_VAR_DIR / "static")
CORECUBE_UPLOADS_DIR: Final = CORECUBE_VAR_DIR / "uploads"
#: The BM25 index, which can be built again at any time.
CORECUBE_BM25_DIR: Final = CORECUBE_VAR_DIR / "bm25"
#: What connectors keep between syncs, a folder per connection.
CORECUBE_SOURCES_DIR: Final = CORECUBE_VAR_DIR / "sources"
CORECUBE_SAMPLES_DIR: Final = BASE_DIR / "corecube" / "samples"
#: Folders below which connections may read this machine's files, beside the samples.
CORECUBE_FOLDER_ROOTS = env_folders("CORECUBE_FOLDER_ROOTS", folder_roots())
#: Database connections that each process holds at the most, and the searches among them; ingests have 16 of them.
CORECUBE_POOL_CONNECTIONS: Final = env_int("CORECUBE_POOL_CONNECTIONS", 96, low=32, high=10_000)
CORECUBE_RETRIEVAL_SLOTS = env_int("CORECUBE_RETRIEVAL_SLOTS", 16, low=16, high=CORECUBE_POOL_CONNECTIONS - 16)
#: How soon a server that is gone without a word is noticed, where DATABASE_URL says nothing else: seconds until a
#: connection must be there, seconds of silence until it is asked for a sign, and the milliseconds that this may take.
_NETWORK_OPTIONS: Final = {"connect_timeout": 5, "keepalives_idle": 30, "tcp_user_timeout": 10_000}
_LOG_LEVELS: Final = ("CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG")


def _database() -> dict[str, Any]:
    """Return the server that DATABASE_URL names, or the embedded one."""
    url = env_secret("DATABASE_URL")
    settings = _database_at(url) if url else {"ENGINE": "corecube.embedded", "NAME": "corecube"}
    options = {
        **_NETWORK_OPTIONS,
        **settings.get("OPTIONS", {}),
        "pool": {"min_size": 1, "max_size": CORECUBE_POOL_CONNECTIONS, "timeout": 5},
    }
    return {**settings, "OPTIONS": options}


def _database_at(url: str) -> dict[str, Any]:
    """Return Django's settings for a server; raise ImproperlyConfigured, without the URL, which holds a password."""
    try:
        settings: dict[str, Any] = dict(dj_database_url.parse(url))
    except ValueError:
        settings = {}
    if settings.get("ENGINE") != "django.db.backends.postgresql":
        raise ImproperlyConfigured("DATABASE_URL must read like postgres://user:password@host/name.")
    return {**settings, "ENGINE": "corecube.postgresql"}


DEBUG = env_bool("CORECUBE_DEBUG", default=False)
SECRET_KEY = env_secret("SECRET_KEY") or secret_key(CORECUBE_VAR_DIR / "secret_key")
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env_list("CSRF_TRUSTED_ORIGINS")
#: Addresses and networks of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed; "*" for any.
CORECUBE_TRUSTED_PROXIES = env_networks("CORECUBE_TRUSTED_PROXIES")
#: Where `manage.py start` serves; port 0 takes 8000 or, while that is taken, one of the next few.
CORECUBE_HOST = env_str("CORECUBE_HOST", "127.0.0.1")
CORECUBE_PORT = env_int("CORECUBE_PORT", 0, low=0, high=65_535)

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "ninja",
    "corecube",
    "retrieval",
    "explorer",
]
MIDDLEWARE = [
    "corecube.http.RequestIdMiddleware",
    "corecube.api.ErrorShapeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "corecube.http.ContentSecurityPolicyMiddleware",
    "corecube.refusals.RefusalMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "corecube.http.DatabaseOutageMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "corecube.sign_ins.SignInMiddleware",
]
ROOT_URLCONF = "corecube.urls"
ASGI_APPLICATION = "corecube.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "explorer.navigation.navigation",
            ],
        },
    },
]

DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "corecube.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
#: The sign-in provider (OpenID Connect); without an issuer people sign in with passwords only.
CORECUBE_OIDC_ISSUER = env_url("CORECUBE_OIDC_ISSUER")
CORECUBE_OIDC_CLIENT_ID = env_str("CORECUBE_OIDC_CLIENT_ID")
CORECUBE_OIDC_CLIENT_SECRET = env_secret("CORECUBE_OIDC_CLIENT_SECRET")
#: Where the provider is, for one that does not publish it under its issuer.
CORECUBE_OIDC_AUTHORIZATION_URL = env_url("CORECUBE_OIDC_AUTHORIZATION_URL")
CORECUBE_OIDC_TOKEN_URL = env_url("CORECUBE_OIDC_TOKEN_URL")
CORECUBE_OIDC_JWKS_URL = env_url("CORECUBE_OIDC_JWKS_URL")
CORECUBE_OIDC_USERINFO_URL = env_url("CORECUBE_OIDC_USERINFO_URL")
CORECUBE_OIDC_SIGN_OUT_URL = env_url("CORECUBE_OIDC_SIGN_OUT_URL")
#: Where it sends people back to; empty for the address that they came to.
CORECUBE_OIDC_CALLBACK_URL = env_url("CORECUBE_OIDC_CALLBACK_URL")
CORECUBE_OIDC_SCOPES = env_str("CORECUBE_OIDC_SCOPES", "openid profile email")
CORECUBE_OIDC_GROUPS_CLAIM = env_str("CORECUBE_OIDC_GROUPS_CLAIM", "groups")
#: Value of the groups claim that makes admins; empty for none.
CORECUBE_OIDC_ADMIN_GROUP = env_str("CORECUBE_OIDC_ADMIN_GROUP")
#: Whether somebody whom nobody here knows gets a user, who sees nothing until they are granted something.
CORECUBE_OIDC_CREATE_USERS = env_bool("CORECUBE_OIDC_CREATE_USERS", default=True)
#: Whether a first sign-in takes over the user with the same, verified, e-mail address.
CORECUBE_OIDC_LINK_BY_MAIL = env_bool("CORECUBE_OIDC_LINK_BY_MAIL", default=False)
#: The provider as the sign-in page calls it.
CORECUBE_OIDC_LABEL = env_str("CORECUBE_OIDC_LABEL", "single sign-on")
#: Whether it is the only way in: no password is taken any more.
CORECUBE_OIDC_ONLY = env_bool("CORECUBE_OIDC_ONLY", default=False)
#: Hours after which who came through it has to come again; groups are looked at then.
CORECUBE_OIDC_SESSION_HOURS = env_int("CORECUBE_OIDC_SESSION_HOURS", 12, low=1, high=8760)
if CORECUBE_OIDC_ISSUER and not CORECUBE_OIDC_CLIENT_ID:
    raise ImproperlyConfigured("CORECUBE_OIDC_ISSUER needs CORECUBE_OIDC_CLIENT_ID.")
if CORECUBE_OIDC_ONLY and not CORECUBE_OIDC_ISSUER:
    raise ImproperlyConfigured("CORECUBE_OIDC_ONLY needs CORECUBE_OIDC_ISSUER: nobody could sign in.")
if "openid" not in CORECUBE_OIDC_SCOPES.split():
    raise ImproperlyConfigured("CORECUBE_OIDC_SCOPES must hold openid.")
if CORECUBE_OIDC_AUTHORIZATION_URL and not (CORECUBE_OIDC_TOKEN_URL and CORECUBE_OIDC_JWKS_URL):
    raise ImproperlyConfigured("CORECUBE_OIDC_AUTHORIZATION_URL needs CORECUBE_OIDC_TOKEN_URL and _JWKS_URL.")
#: Failed sign-ins with a password that are accepted in 15 minutes: under one name from one address, under one name from
#: anywhere, and from one address.
CORECUBE_SIGN_IN_FAILURES = env_int("CORECUBE_SIGN_IN_FAILURES", 5, low=1, high=1000)
CORECUBE_SIGN_IN_FAILURES_PER_NAME = env_int("CORECUBE_SIGN_IN_FAILURES_PER_NAME", 20, low=1, high=100_000)
CORECUBE_SIGN_IN_FAILURES_PER_ADDRESS = env_int("CORECUBE_SIGN_IN_FAILURES_PER_ADDRESS", 30, low=1, high=100_000)
AUTHENTICATION_BACKENDS = [
    "corecube.sign_ins.SignInGuard",
    *([] if CORECUBE_OIDC_ONLY else ["django.contrib.auth.backends.ModelBackend"]),
    *(["corecube.oidc.backend.ProviderBackend"] if CORECUBE_OIDC_ISSUER else []),
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "explorer:search"
LOGOUT_REDIRECT_URL = "login"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = env_bool("CORECUBE_SECURE_COOKIES", default=False)
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

LANGUAGE_CODE = "en"
# One language; asking for it at every value of a template costs a search page a tenth of its time.
USE_I18N = False
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static", ("vendor", CORECUBE_SCRIPTS_DIR)]
WHITENOISE_USE_FINDERS = True
#: Files whose names tell their version: browsers keep them for good.
WHITENOISE_IMMUTABLE_FILE_TEST = r"/vendor/plotly-[0-9.]+\.min\.js$"
WHITENOISE_AUTOREFRESH = DEBUG

REDIS_URL: Final = env_secret("REDIS_URL")
CELERY_BROKER_URL = REDIS_URL or "filesystem://"
CELERY_BROKER_TRANSPORT_OPTIONS = (
    {"visibility_timeout": 6 * 3600} if REDIS_URL else file_queue(CORECUBE_VAR_DIR / "queue")
)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
#: Seconds that tasks at work have to end by themselves before a stopping worker gives them back to the queue.
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 2.0

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname:<7} {name} {message}", "style": "{"}},
    "filters": {"refusals": {"()": "corecube.logs.RefusalFilter"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["refusals"]}},
    # The HTTP clients would log addresses, what services answer and what signs requests; dulwich, what a server lacks.
    "loggers": {
        **{name: {"level": "WARNING"} for name in ("botocore", "httpx2", "httpcore2", "mcp")},
        "dulwich": {"level": "ERROR"},
        # Its warnings repeat, at every attempt to connect, what whoever wanted the connection logs.
        "psycopg.pool": {"level": "ERROR"},
    },
    "root": {"handlers": ["console"], "level": env_choice("CORECUBE_LOG_LEVEL", "WARNING", _LOG_LEVELS)},
}


def _embed_service(name: str) -> dict[str, Any] | None:
    """Return the embedding service that the variables beginning with `name` describe; None for local models."""
    kind = env_choice(name, "local", ("local", "openai", "voyage"))
    if kind == "local":
        return None
    return {
        "kind": kind,
        "url": env_url(f"{name}_URL"),
        "model": env_str(f"{name}_MODEL"),
        "query_model": env_str(f"{name}_QUERY_MODEL"),
        "api_key": env_token(f"{name}_API_KEY"),
        "dim": env_int(f"{name}_DIMENSIONS", 0, low=0, high=4000),
        "shorten": env_choice(f"{name}_SHORTEN", "", ("service", "here")),
        "base64": env_choice(f"{name}_ENCODING", "base64", ("base64", "float")) == "base64",
        "max_tokens": env_int(f"{name}_MAX_TOKENS", 8000, low=64, high=10**6),
        "batch_texts": env_int(f"{name}_BATCH", 64, low=1, high=2048),
        "batch_tokens": env_int(f"{name}_BATCH_TOKENS", 60_000, low=64, high=10**7),
        "requests_per_minute": env_int(f"{name}_REQUESTS_PER_MINUTE", 0, low=0, high=10**6),
        "tokens_per_minute": env_int(f"{name}_TOKENS_PER_MINUTE", 0, low=0, high=10**9),
        "attempts": env_int(f"{name}_ATTEMPTS", 6, low=1, high=20),
        "timeout_seconds": env_int(f"{name}_TIMEOUT", 60, low=1, high=600),
        "query_timeout_seconds": env_int(f"{name}_QUERY_TIMEOUT_MS", 1000, low=50, high=60_000) / 1000,
    }


#: The local embedding model, a folder under the models; its tokenizer also counts the tokens for services.
CORECUBE_MODEL = env_str("CORECUBE_MODEL", "bge-small-en-v1.5")
#: Components that the local model's vectors are cut to, where it was trained for that; 0 keeps them whole.
CORECUBE_MODEL_DIMENSIONS = env_int("CORECUBE_MODEL_DIMENSIONS", 0, low=0, high=4000)
#: The service that takes the local model's place, and the one that an installation is changing to.
CORECUBE_EMBEDDER = _embed_service("CORECUBE_EMBEDDER")
CORECUBE_NEXT_EMBEDDER = _embed_service("CORECUBE_NEXT_EMBEDDER")
#: What a chunk's vector is made of in a new embedding index: the chunk alone, or its tokens in the whole document.
CORECUBE_EMBED_MODE = env_choice("CORECUBE_EMBED_MODE", "chunk_first", ("chunk_first", "late"))
#: Most embedding calls that one sync has at work at once.
CORECUBE_EMBED_CONCURRENCY = env_int("CORECUBE_EMBED_CONCURRENCY", 8, low=2, high=16)
#: What scores the best hits once more: nothing, a folder under the models, "late-interaction", or a service ("http").
CORECUBE_RERANKER = env_folder_name("CORECUBE_RERANKER")
CORECUBE_RERANKER_KIND = env_choice("CORECUBE_RERANKER_KIND", "", ("cohere", "jina", "tei", "vllm", "voyage"))
CORECUBE_RERANKER_URL = env_url("CORECUBE_RERANKER_URL")
CORECUBE_RERANKER_MODEL = env_str("CORECUBE_RERANKER_MODEL")
CORECUBE_RERANKER_API_KEY = env_token("CORECUBE_RERANKER_API_KEY")
#: Folders under the models: of the model of the sparse leg, and of the one whose token vectors are stored; empty for
#: none.
CORECUBE_SPARSE_MODEL = env_folder_name("CORECUBE_SPARSE_MODEL")
CORECUBE_TOKEN_MODEL = env_folder_name("CORECUBE_TOKEN_MODEL")
#: The language model that adds context or questions to chunks, where a connection asks for it; none by default.
CORECUBE_ENRICH_URL = env_url("CORECUBE_ENRICH_URL")
CORECUBE_ENRICH_MODEL = env_str("CORECUBE_ENRICH_MODEL")
CORECUBE_ENRICH_API_KEY = env_token("CORECUBE_ENRICH_API_KEY")
#: A folder under the models whose model writes questions on this machine, in place of the language model.
CORECUBE_ENRICH_QUESTIONS_MODEL = env_folder_name("CORECUBE_ENRICH_QUESTIONS_MODEL")
#: Whether new connections ask for questions unless they say otherwise, where there is a model that may write them.
CORECUBE_ENRICH_BY_DEFAULT = env_bool("CORECUBE_ENRICH_BY_DEFAULT", default=True)
#: Chunks that one pass gives to it at the most, and requests at a time.
CORECUBE_ENRICH_CHUNKS = env_int("CORECUBE_ENRICH_CHUNKS", 300, low=0, high=1_000_000)
CORECUBE_ENRICH_CONCURRENCY = env_int("CORECUBE_ENRICH_CONCURRENCY", 30, low=1, high=200)
#: Its price of a million tokens, for estimates; 0 leaves the price out.
CORECUBE_ENRICH_PRICE_SENT = env_float("CORECUBE_ENRICH_PRICE_SENT", 0.0, low=0.0, high=100_000.0)
CORECUBE_ENRICH_PRICE_ANSWERED = env_float("CORECUBE_ENRICH_PRICE_ANSWERED", 0.0, low=0.0, high=100_000.0)
#: The language model that answers by default, over an OpenAI-compatible address up to and with /v1; none by default.
CORECUBE_LLM_URL = env_url("CORECUBE_LLM_URL")
CORECUBE_LLM_MODEL = env_str("CORECUBE_LLM_MODEL")
CORECUBE_LLM_API_KEY = env_token("CORECUBE_LLM_API_KEY")
if bool(CORECUBE_LLM_URL) != bool(CORECUBE_LLM_MODEL):
    raise ImproperlyConfigured("CORECUBE_LLM_URL and CORECUBE_LLM_MODEL belong together.")
#: Seconds after which a worker checks again whether a language model that nobody asked can be reached; 0 never does.
CORECUBE_LLM_CHECK_SECONDS = env_int("CORECUBE_LLM_CHECK_SECONDS", 300, low=0, high=86_400)
#: PostgreSQL text search configuration that documents and queries are read with.
CORECUBE_TEXT_SEARCH_CONFIG = env_identifier("CORECUBE_TEXT_SEARCH_CONFIG", "english")
CORECUBE_MAX_FILE_BYTES = env_int("CORECUBE_MAX_FILE_BYTES", 50 * 2**20, low=1, high=2**31)
#: Longest query that an API accepts, in characters; the presets read the first 500 of it.
CORECUBE_MAX_QUERY_CHARACTERS = env_int("CORECUBE_MAX_QUERY_CHARACTERS", 32_000, low=500, high=10**6)
CORECUBE_KEEP_QUERY_TEXT = env_bool("CORECUBE_KEEP_QUERY_TEXT", default=True)
#: Days after which the record of a search is deleted; 0 keeps it for ever.
CORECUBE_KEEP_SEARCHES_DAYS = env_int("CORECUBE_KEEP_SEARCHES_DAYS", 90, low=0, high=36_500)
#: Days after its last question after which a conversation is deleted; 0 keeps it for ever.
CORECUBE_KEEP_CONVERSATIONS_DAYS = env_int("CORECUBE_KEEP_CONVERSATIONS_DAYS", 365, low=0, high=36_500)
#: A sync that would delete more than this share of a connection's documents stops and asks, in percent.
CORECUBE_DELETE_GUARD_PERCENT = env_int("CORECUBE_DELETE_GUARD_PERCENT", 50, low=0, high=100)
#: Hours after which a scheduled sync looks at the whole of a source that tells what changed; 0 does so every time.
CORECUBE_FULL_SYNC_HOURS = env_int("CORECUBE_FULL_SYNC_HOURS", 24, low=0, high=8_760)
#: What parsing and preparing one file may cost: seconds, and one more for each 64 KiB; MiB of address space (0: any).
CORECUBE_PARSE_SECONDS = env_int("CORECUBE_PARSE_SECONDS", 120, low=1, high=3600)
CORECUBE_PARSE_MEBIBYTES = env_int("CORECUBE_PARSE_MEBIBYTES", 2048, low=0, high=2**20)
#: Seconds that a worker may be at one step (reading an item, a call of the model, storing) without progress; then it
#: is ended, and the item fails.
CORECUBE_STEP_SECONDS = env_int("CORECUBE_STEP_SECONDS", 900, low=1, high=86_400)
#: Seconds for which a dry run opens files; of what is left then it only counts what the source lists.
CORECUBE_DRY_RUN_SECONDS = env_int("CORECUBE_DRY_RUN_SECONDS", 300, low=0, high=86_400)
#: Seconds without a sign of life after which a worker counts as lost, and others take up what it had in hand.
CORECUBE_LOST_SECONDS = env_int("CORECUBE_LOST_SECONDS", 30, low=2, high=3600)
#: Query vectors that each process keeps in memory; 0 keeps none.
CORECUBE_QUERY_CACHE = env_int("CORECUBE_QUERY_CACHE", 2000, low=0, high=1_000_000)
#: Vectors of sentences that each process keeps in memory; 0 keeps none.
CORECUBE_SENTENCE_CACHE = env_int("CORECUBE_SENTENCE_CACHE", 10_000, low=0, high=1_000_000)
#: Whether a starting process opens, beside its start, what its first search would have to open.
CORECUBE_WARM_UP = env_bool("CORECUBE_WARM_UP", default=True)
#: Seconds after which a process writes when documents were last read; 0 keeps no such record.
CORECUBE_ACCESS_SECONDS = env_int("CORECUBE_ACCESS_SECONDS", 5, low=0, high=3600)
#: Threads that search legs run on beside the request's own; 0 runs the legs one after the other. More than there are
#: cores would only spread a search over more sessions of the database, each of which begins with cold caches.
CORECUBE_LEG_THREADS = env_int("CORECUBE_LEG_THREADS", min(4, cores()), low=0, high=64)
#: Whether this machine keeps a BM25 index; without one, presets that search it go by their other legs.
CORECUBE_BM25 = env_bool("CORECUBE_BM25", default=True)
#: Threads that answers are quoted and checked on; searches have others.
CORECUBE_ANSWER_THREADS = env_int("CORECUBE_ANSWER_THREADS", 2, low=1, high=64)
