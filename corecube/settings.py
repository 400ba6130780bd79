"""CoreCube's settings. Only this module reads the environment; `docs/configuration.md` lists the variables."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from corecube import env
from corecube.process import cores, make_private, write_privately

# onnxruntime collects telemetry in the home folder unless it is disabled before the import.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

write_privately()
BASE_DIR: Final = Path(__file__).resolve().parent.parent
CORECUBE_VAR_DIR: Final = env.usable_folder(env.path("CORECUBE_VAR_DIR", BASE_DIR / "var"))
# This also protects the content, which an earlier release may have left readable.
make_private(CORECUBE_VAR_DIR)
CORECUBE_POSTGRES_DIR: Final = CORECUBE_VAR_DIR / "postgres"
CORECUBE_MODELS_DIR: Final = CORECUBE_VAR_DIR / "models"
CORECUBE_UPLOADS_DIR: Final = CORECUBE_VAR_DIR / "uploads"
#: The read models: the BM25 index and the vector files, which can be rebuilt at any time.
CORECUBE_BM25_DIR: Final = CORECUBE_VAR_DIR / "bm25"
CORECUBE_VECTORS_DIR: Final = CORECUBE_VAR_DIR / "vectors"
#: State of connectors between syncs, a folder per connection.
CORECUBE_SOURCES_DIR: Final = CORECUBE_VAR_DIR / "sources"
CORECUBE_SAMPLES_DIR: Final = BASE_DIR / "corecube" / "samples"
#: Folders below which connections may read local files, in addition to the samples.
CORECUBE_FOLDER_ROOTS = env.folders("CORECUBE_FOLDER_ROOTS", env.folder_roots())
#: Limit of database connections per process, and of searches among them; ingestion has 16.
CORECUBE_POOL_CONNECTIONS: Final = env.integer("CORECUBE_POOL_CONNECTIONS", 96, low=32, high=10_000)
CORECUBE_RETRIEVAL_SLOTS = env.integer("CORECUBE_RETRIEVAL_SLOTS", 16, low=16, high=CORECUBE_POOL_CONNECTIONS - 16)
#: Defaults for detecting a lost server: timeout of connecting in seconds, idle seconds until a keepalive, and the
#: timeout of its response in milliseconds.
_NETWORK_OPTIONS: Final = {"connect_timeout": 5, "keepalives_idle": 30, "tcp_user_timeout": 10_000}
_LOG_LEVELS: Final = ("CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG")
_LOG_FORMAT: Final = env.choice("CORECUBE_LOG_FORMAT", "text", ("text", "json"))


def _database() -> dict[str, Any]:
    url = env.secret("DATABASE_URL")
    settings = _database_at(url) if url else {"ENGINE": "corecube.embedded", "NAME": "corecube"}
    options = {
        **_NETWORK_OPTIONS,
        **settings.get("OPTIONS", {}),
        "pool": {"min_size": 1, "max_size": CORECUBE_POOL_CONNECTIONS, "timeout": 5},
    }
    return {**settings, "OPTIONS": options}


def _replica(url: str) -> dict[str, Any]:
    settings = _database_at(url, "Each address in CORECUBE_REPLICA_URLS")
    # A replica that does not answer is not waited for: the primary is read.
    pool = {"min_size": 1, "max_size": CORECUBE_POOL_CONNECTIONS, "timeout": 1}
    options = {**_NETWORK_OPTIONS, "connect_timeout": 2, **settings.get("OPTIONS", {}), "pool": pool}
    return {**settings, "OPTIONS": options, "TEST": {"MIRROR": "default"}}


def _database_at(url: str, name: str = "DATABASE_URL") -> dict[str, Any]:
    """Return Django's settings for a server; raise ImproperlyConfigured without the URL, which contains a password."""
    try:
        settings: dict[str, Any] = dict(dj_database_url.parse(url))
    except ValueError:
        settings = {}
    if settings.get("ENGINE") != "django.db.backends.postgresql":
        raise ImproperlyConfigured(f"{name} must have the form postgres://user:password@host/name.")
    return {**settings, "ENGINE": "corecube.postgresql"}


DEBUG = env.flag("CORECUBE_DEBUG", default=False)
#: Where CoreCube stores the key that it makes.
CORECUBE_SECRET_KEY_FILE: Final = CORECUBE_VAR_DIR / "secret_key"
SECRET_KEY = env.secret("SECRET_KEY") or env.secret_key(CORECUBE_SECRET_KEY_FILE)
ALLOWED_HOSTS = env.texts("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.texts("CSRF_TRUSTED_ORIGINS")
#: Pages of these origins may call the APIs from a browser, with a key; never with the session of the console.
CORS_ALLOWED_ORIGINS = env.origins("CORECUBE_CORS_ORIGINS")
CORS_ALLOW_CREDENTIALS = False
CORS_URLS_REGEX = r"^/(api/|v1/|v2/|mcp$|oauth/(register|token|revoke)$|\.well-known/oauth-)"
CORS_ALLOW_HEADERS = (
    *("accept", "authorization", "content-type", "idempotency-key", "x-corecube-user"),
    *("mcp-protocol-version", "mcp-session-id", "last-event-id"),
    # OpenAI's client for JavaScript sends these.
    *("user-agent", "openai-organization", "openai-project", "openai-beta"),
    *(f"x-stainless-{name}" for name in ("lang", "package-version", "os", "arch", "runtime", "runtime-version")),
    *(f"x-stainless-{name}" for name in ("retry-count", "timeout", "helper-method", "poll-helper")),
)
CORS_EXPOSE_HEADERS = ("x-request-id", "retry-after", "x-should-retry", "mcp-session-id", "www-authenticate")
#: Addresses and networks of proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted; "*" for any.
CORECUBE_TRUSTED_PROXIES = env.networks("CORECUBE_TRUSTED_PROXIES")
#: Address and port of `manage.py start`; port 0 uses the first free port from 8000.
CORECUBE_HOST = env.text("CORECUBE_HOST", "127.0.0.1")
CORECUBE_PORT = env.integer("CORECUBE_PORT", 0, low=0, high=65_535)

INSTALLED_APPS = [
    *(f"django.contrib.{it}" for it in ("admin", "auth", "contenttypes", "sessions", "messages", "staticfiles")),
    *("corsheaders", "django_htmx", "ninja", "oauth2_provider", "corecube", "retrieval", "explorer"),
]
MIDDLEWARE = [
    "corecube.http.RequestIdMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "corecube.api.ErrorShapeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "corecube.http.ContentSecurityPolicyMiddleware",
    "corecube.refusals.RefusalMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
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
            ]
        },
    }
]

#: Addresses of read replicas of the database, separated by commas; searches read documents from them.
CORECUBE_REPLICA_URLS: Final = env.secret_texts("CORECUBE_REPLICA_URLS")
#: Seconds that a replica may be behind; beyond, the database in DATABASE_URL is read.
CORECUBE_REPLICA_LAG_SECONDS = env.integer("CORECUBE_REPLICA_LAG_SECONDS", 10, low=1, high=3600)
DATABASES = {
    "default": _database(),
    **{f"replica_{number}": _replica(url) for number, url in enumerate(CORECUBE_REPLICA_URLS, 1)},
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "corecube.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
#: The sign-in provider (OpenID Connect); without an issuer users sign in only with passwords.
CORECUBE_OIDC_ISSUER = env.url("CORECUBE_OIDC_ISSUER")
CORECUBE_OIDC_CLIENT_ID = env.text("CORECUBE_OIDC_CLIENT_ID")
CORECUBE_OIDC_CLIENT_SECRET = env.secret("CORECUBE_OIDC_CLIENT_SECRET")
#: Endpoints of a provider without a discovery document.
CORECUBE_OIDC_AUTHORIZATION_URL = env.url("CORECUBE_OIDC_AUTHORIZATION_URL")
CORECUBE_OIDC_TOKEN_URL = env.url("CORECUBE_OIDC_TOKEN_URL")
CORECUBE_OIDC_JWKS_URL = env.url("CORECUBE_OIDC_JWKS_URL")
CORECUBE_OIDC_USERINFO_URL = env.url("CORECUBE_OIDC_USERINFO_URL")
CORECUBE_OIDC_SIGN_OUT_URL = env.url("CORECUBE_OIDC_SIGN_OUT_URL")
#: The callback URL; empty for the URL of the request.
CORECUBE_OIDC_CALLBACK_URL = env.url("CORECUBE_OIDC_CALLBACK_URL")
CORECUBE_OIDC_SCOPES = env.text("CORECUBE_OIDC_SCOPES", "openid profile email")
CORECUBE_OIDC_GROUPS_CLAIM = env.text("CORECUBE_OIDC_GROUPS_CLAIM", "groups")
#: Value of the groups claim that gives admin rights; empty for none.
CORECUBE_OIDC_ADMIN_GROUP = env.text("CORECUBE_OIDC_ADMIN_GROUP")
#: Whether to create unknown users, without access to documents.
CORECUBE_OIDC_CREATE_USERS = env.flag("CORECUBE_OIDC_CREATE_USERS", default=True)
#: Whether a first sign-in is linked to the user with the same verified email address.
CORECUBE_OIDC_LINK_BY_MAIL = env.flag("CORECUBE_OIDC_LINK_BY_MAIL", default=False)
#: The name of the provider on the sign-in page.
CORECUBE_OIDC_LABEL = env.text("CORECUBE_OIDC_LABEL", "single sign-on")
CORECUBE_OIDC_ONLY = env.flag("CORECUBE_OIDC_ONLY", default=False)  #: Whether to disable sign-in with passwords.
#: Hours until users of the provider must sign in again, which updates their groups.
CORECUBE_OIDC_SESSION_HOURS = env.integer("CORECUBE_OIDC_SESSION_HOURS", 12, low=1, high=8760)
if CORECUBE_OIDC_ISSUER and not CORECUBE_OIDC_CLIENT_ID:
    raise ImproperlyConfigured("CORECUBE_OIDC_ISSUER requires CORECUBE_OIDC_CLIENT_ID.")
if CORECUBE_OIDC_ONLY and not CORECUBE_OIDC_ISSUER:
    raise ImproperlyConfigured("CORECUBE_OIDC_ONLY requires CORECUBE_OIDC_ISSUER.")
if "openid" not in CORECUBE_OIDC_SCOPES.split():
    raise ImproperlyConfigured("CORECUBE_OIDC_SCOPES must contain openid.")
if CORECUBE_OIDC_AUTHORIZATION_URL and not (CORECUBE_OIDC_TOKEN_URL and CORECUBE_OIDC_JWKS_URL):
    raise ImproperlyConfigured("CORECUBE_OIDC_AUTHORIZATION_URL requires CORECUBE_OIDC_TOKEN_URL and _JWKS_URL.")
#: Limits of failed sign-ins with a password in 15 minutes: by name and address, by name, and by address.
CORECUBE_SIGN_IN_FAILURES = env.integer("CORECUBE_SIGN_IN_FAILURES", 5, low=1, high=1000)
CORECUBE_SIGN_IN_FAILURES_PER_NAME = env.integer("CORECUBE_SIGN_IN_FAILURES_PER_NAME", 20, low=1, high=100_000)
CORECUBE_SIGN_IN_FAILURES_PER_ADDRESS = env.integer("CORECUBE_SIGN_IN_FAILURES_PER_ADDRESS", 30, low=1, high=100_000)
AUTHENTICATION_BACKENDS = [
    "corecube.sign_ins.SignInGuard",
    *([] if CORECUBE_OIDC_ONLY else ["django.contrib.auth.backends.ModelBackend"]),
    *(["corecube.oidc.backend.ProviderBackend"] if CORECUBE_OIDC_ISSUER else []),
]
#: Whether agents may register themselves as OAuth clients of `/mcp`, and the hosts to which these may redirect, in
#: addition to the user's own computer.
CORECUBE_MCP_REGISTRATION = env.flag("CORECUBE_MCP_REGISTRATION", default=True)
CORECUBE_MCP_REDIRECT_HOSTS = [host.lower() for host in env.texts("CORECUBE_MCP_REDIRECT_HOSTS")]
OAUTH2_PROVIDER: dict[str, Any] = {
    # Only codes and refresh tokens are exchanged for tokens.
    "OAUTH2_SERVER_CLASS": "oauthlib.oauth2.WebApplicationServer",
    "OAUTH2_VALIDATOR_CLASS": "corecube.oauth.validator.Validator",
    "OAUTH2_BACKEND_CLASS": "corecube.oauth.validator.Core",
    "SCOPES": {"mcp": "Search and read all documents that you can see, and keep your private memory"},
    "AUTHORIZATION_CODE_EXPIRE_SECONDS": 60,
    "ACCESS_TOKEN_EXPIRE_SECONDS": 3600,
    "REFRESH_TOKEN_EXPIRE_SECONDS": 30 * 24 * 3600,  # without use
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    "ALLOW_LOCALHOST_LOOPBACK": True,
    "DCR_ENABLED": CORECUBE_MCP_REGISTRATION,
    "OAUTH2_RESPONSE_TYPES_SUPPORTED": ["code"],
    "OAUTH2_GRANT_TYPES_SUPPORTED": ["authorization_code", "refresh_token"],
    "OAUTH2_TOKEN_ENDPOINT_AUTH_METHODS_SUPPORTED": ["none"],
    "OAUTH2_PROTECTED_RESOURCE_NAME": "CoreCube",
    # RFC 9700: PKCE only by S256, the issuer in answers, tokens stored as digests.
    **{
        f"COMPLIANT_BCP_RFC9700_{name}": True
        for name in (
            *("IMPLICIT_GRANT", "PASSWORD_GRANT", "PKCE_METHOD", "ACCESS_TOKEN_TRANSPORT", "AUTHZ_RESPONSE_ISS"),
            *("TOKEN_STORAGE", "REFRESH_TOKEN", "REDIRECT_URI_SCHEME", "REDIRECT_URI_MATCHING", "PKCE_REQUIRED"),
        )
    },
}
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "explorer:home"
LOGOUT_REDIRECT_URL = "login"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = env.flag("CORECUBE_SECURE_COOKIES", default=False)
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

LANGUAGE_CODE = "en"
# Only one language; translations would take a tenth of the time of a search page.
USE_I18N = False
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
#: Files with the start of their sha256 in their names: browsers keep them for good.
WHITENOISE_IMMUTABLE_FILE_TEST = r"\.[0-9a-f]{12}\.min\.js$"
WHITENOISE_AUTOREFRESH = DEBUG

REDIS_URL: Final = env.secret("REDIS_URL")
#: The Redis in which processes share caches, circuit breakers and limits: by default the broker's, unless only Celery
#: knows the scheme of its address.
CORECUBE_REDIS_URL = env.redis_url("CORECUBE_REDIS_URL") or (
    REDIS_URL if REDIS_URL.startswith(("redis://", "rediss://")) else ""
)
CELERY_BROKER_URL = REDIS_URL or "filesystem://"
CELERY_BROKER_TRANSPORT_OPTIONS = (
    {"visibility_timeout": 6 * 3600} if REDIS_URL else env.file_queue(CORECUBE_VAR_DIR / "queue")
)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
#: Seconds for running tasks to end before a stopping worker returns them to the queue.
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 2.0

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {
            "()": "corecube.logs.LineFormatter",
            "format": "{asctime} {levelname:<7} {name} {message}",
            "style": "{",
        },
        "json": {"()": "corecube.logs.JsonFormatter"},
    },
    "filters": {"refusals": {"()": "corecube.logs.RefusalFilter"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": _LOG_FORMAT, "filters": ["refusals"]}},
    # The HTTP clients would log URLs, responses and signatures; OAuth, codes and tokens; dulwich, missing features.
    "loggers": {
        **{
            name: {"level": "WARNING"}
            for name in ("botocore", "httpx2", "httpcore2", "mcp", "oauthlib", "oauth2_provider")
        },
        "dulwich": {"level": "ERROR"},
        # Its warnings repeat errors that callers log.
        "psycopg.pool": {"level": "ERROR"},
        # The web server's own handlers write text.
        **({"uvicorn": {"handlers": []}} if _LOG_FORMAT == "json" else {}),
    },
    "root": {"handlers": ["console"], "level": env.choice("CORECUBE_LOG_LEVEL", "WARNING", _LOG_LEVELS)},
}

#: Where OpenTelemetry's spans go; none by default.
OTEL_EXPORTER_OTLP_ENDPOINT = env.url("OTEL_EXPORTER_OTLP_ENDPOINT")
if OTEL_EXPORTER_OTLP_ENDPOINT and not all(map(find_spec, ("opentelemetry.sdk", "opentelemetry.exporter"))):
    raise ImproperlyConfigured(
        "OTEL_EXPORTER_OTLP_ENDPOINT requires opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http."
    )


_EMBEDDERS = ("local", "sentence-transformers", "openai", "voyage")


def _embed_service(name: str) -> dict[str, Any] | None:
    """Return the embedding service in the variables with this prefix; None for local models."""
    kind = env.choice(name, "local", _EMBEDDERS)
    if kind in {"local", "sentence-transformers"}:
        return None
    return {
        "kind": kind,
        "url": env.url(f"{name}_URL"),
        "model": env.text(f"{name}_MODEL"),
        "query_model": env.text(f"{name}_QUERY_MODEL"),
        "api_key": env.token(f"{name}_API_KEY"),
        "dim": env.integer(f"{name}_DIMENSIONS", 0, low=0, high=4000),
        "shorten": env.choice(f"{name}_SHORTEN", "", ("service", "here")),
        "base64": env.choice(f"{name}_ENCODING", "base64", ("base64", "float")) == "base64",
        "max_tokens": env.integer(f"{name}_MAX_TOKENS", 8000, low=64, high=10**6),
        "batch_texts": env.integer(f"{name}_BATCH", 64, low=1, high=2048),
        "batch_tokens": env.integer(f"{name}_BATCH_TOKENS", 60_000, low=64, high=10**7),
        "requests_per_minute": env.integer(f"{name}_REQUESTS_PER_MINUTE", 0, low=0, high=10**6),
        "tokens_per_minute": env.integer(f"{name}_TOKENS_PER_MINUTE", 0, low=0, high=10**9),
        "attempts": env.integer(f"{name}_ATTEMPTS", 6, low=1, high=20),
        "timeout_seconds": env.integer(f"{name}_TIMEOUT", 60, low=1, high=600),
        "query_timeout_seconds": env.integer(f"{name}_QUERY_TIMEOUT_MS", 1000, low=50, high=60_000) / 1000,
    }


#: The local embedding model, a folder in the models directory; its tokenizer also counts tokens for services.
CORECUBE_MODEL = env.text("CORECUBE_MODEL", "bge-small-en-v1.5")
#: Dimensions of shortened vectors of the local model, if it supports that; 0 for all.
CORECUBE_MODEL_DIMENSIONS = env.integer("CORECUBE_MODEL_DIMENSIONS", 0, low=0, high=4000)
#: The embedding service in place of the local model, and the next one during a change.
CORECUBE_EMBEDDER = _embed_service("CORECUBE_EMBEDDER")
CORECUBE_NEXT_EMBEDDER = _embed_service("CORECUBE_NEXT_EMBEDDER")
#: Whether the library sentence-transformers runs the local model.
CORECUBE_EMBEDDER_IS_TORCH = env.choice("CORECUBE_EMBEDDER", "local", _EMBEDDERS) == "sentence-transformers"
#: Embedding of chunks in a new index: each chunk separately, or late chunking over the document.
CORECUBE_EMBED_MODE = env.choice("CORECUBE_EMBED_MODE", "chunk_first", ("chunk_first", "late"))
#: Limit of parallel embedding calls of a sync.
CORECUBE_EMBED_CONCURRENCY = env.integer("CORECUBE_EMBED_CONCURRENCY", 8, low=2, high=16)
#: The reranker: none, a folder in the models directory, "late-interaction", "stored-late-interaction",
#: "sentence-transformers" (the folder is the model), or a service ("http").
CORECUBE_RERANKER = env.folder_name("CORECUBE_RERANKER")
CORECUBE_RERANKER_KIND = env.choice("CORECUBE_RERANKER_KIND", "", ("cohere", "jina", "tei", "vllm", "voyage"))
CORECUBE_RERANKER_URL = env.url("CORECUBE_RERANKER_URL")
CORECUBE_RERANKER_MODEL = env.text("CORECUBE_RERANKER_MODEL")
CORECUBE_RERANKER_API_KEY = env.token("CORECUBE_RERANKER_API_KEY")
#: Folders in the models directory of the sparse model and of the token model; empty for none.
CORECUBE_SPARSE_MODEL = env.folder_name("CORECUBE_SPARSE_MODEL")
#: A reranker of stored token vectors has those of the local embedding model unless another one is named.
CORECUBE_TOKEN_MODEL = env.folder_name("CORECUBE_TOKEN_MODEL") or (
    CORECUBE_MODEL if CORECUBE_RERANKER == "stored-late-interaction" else ""
)
#: The language model that enriches chunks of connections with enrichment; none by default.
CORECUBE_ENRICH_URL = env.url("CORECUBE_ENRICH_URL")
CORECUBE_ENRICH_MODEL = env.text("CORECUBE_ENRICH_MODEL")
CORECUBE_ENRICH_API_KEY = env.token("CORECUBE_ENRICH_API_KEY")
#: A folder in the models directory of a local model that writes questions instead of the language model.
CORECUBE_ENRICH_QUESTIONS_MODEL = env.folder_name("CORECUBE_ENRICH_QUESTIONS_MODEL")
#: Whether new connections use questions by default, if a model is available.
CORECUBE_ENRICH_BY_DEFAULT = env.flag("CORECUBE_ENRICH_BY_DEFAULT", default=True)
#: Limits of chunks per pass and of parallel requests of the enrichment.
CORECUBE_ENRICH_CHUNKS = env.integer("CORECUBE_ENRICH_CHUNKS", 300, low=0, high=1_000_000)
CORECUBE_ENRICH_CONCURRENCY = env.integer("CORECUBE_ENRICH_CONCURRENCY", 30, low=1, high=200)
#: Price per million tokens, for estimates; 0 for none.
CORECUBE_ENRICH_PRICE_SENT = env.number("CORECUBE_ENRICH_PRICE_SENT", 0.0, low=0.0, high=100_000.0)
CORECUBE_ENRICH_PRICE_ANSWERED = env.number("CORECUBE_ENRICH_PRICE_ANSWERED", 0.0, low=0.0, high=100_000.0)
#: The default language model with an OpenAI-compatible API, whose URL includes /v1; none by default.
CORECUBE_LLM_URL = env.url("CORECUBE_LLM_URL")
CORECUBE_LLM_MODEL = env.text("CORECUBE_LLM_MODEL")
CORECUBE_LLM_API_KEY = env.token("CORECUBE_LLM_API_KEY")
if bool(CORECUBE_LLM_URL) != bool(CORECUBE_LLM_MODEL):
    raise ImproperlyConfigured("CORECUBE_LLM_URL and CORECUBE_LLM_MODEL must be set together.")
#: Interval in seconds of checks whether an unused language model is reachable; 0 for none.
CORECUBE_LLM_CHECK_SECONDS = env.integer("CORECUBE_LLM_CHECK_SECONDS", 300, low=0, high=86_400)
#: PostgreSQL text search configuration of documents and queries.
CORECUBE_TEXT_SEARCH_CONFIG = env.identifier("CORECUBE_TEXT_SEARCH_CONFIG", "english")
CORECUBE_MAX_FILE_BYTES = env.integer("CORECUBE_MAX_FILE_BYTES", 50 * 2**20, low=1, high=2**31)
#: Maximum query length of the APIs in characters; presets use the first 500.
CORECUBE_MAX_QUERY_CHARACTERS = env.integer("CORECUBE_MAX_QUERY_CHARACTERS", 32_000, low=500, high=10**6)
#: Tokens to which a request may raise a preset's context budget; 0: a request can only lower it.
CORECUBE_MAX_CONTEXT_TOKENS = env.integer("CORECUBE_MAX_CONTEXT_TOKENS", 0, low=0, high=200_000)
CORECUBE_KEEP_QUERY_TEXT = env.flag("CORECUBE_KEEP_QUERY_TEXT", default=True)
#: Days until the record of a search is deleted; 0 for never.
CORECUBE_KEEP_SEARCHES_DAYS = env.integer("CORECUBE_KEEP_SEARCHES_DAYS", 90, low=0, high=36_500)
#: Days from its last question until a conversation is deleted; 0 for never.
CORECUBE_KEEP_CONVERSATIONS_DAYS = env.integer("CORECUBE_KEEP_CONVERSATIONS_DAYS", 365, low=0, high=36_500)
#: Share of documents in percent above which a sync stops for confirmation before deleting.
CORECUBE_DELETE_GUARD_PERCENT = env.integer("CORECUBE_DELETE_GUARD_PERCENT", 50, low=0, high=100)
#: Hours between full scans by scheduled syncs of sources that report changes; 0 for every sync.
CORECUBE_FULL_SYNC_HOURS = env.integer("CORECUBE_FULL_SYNC_HOURS", 24, low=0, high=8_760)
#: Limits of parsing a file: seconds, plus one per 64 KiB; MiB of address space (0: unlimited).
CORECUBE_PARSE_SECONDS = env.integer("CORECUBE_PARSE_SECONDS", 120, low=1, high=3600)
CORECUBE_PARSE_MEBIBYTES = env.integer("CORECUBE_PARSE_MEBIBYTES", 2048, low=0, high=2**20)
#: Seconds without progress in a step (reading an item, a model call, storing) after which a worker is ended and the
#: item fails.
CORECUBE_STEP_SECONDS = env.integer("CORECUBE_STEP_SECONDS", 900, low=1, high=86_400)
#: Seconds for which a dry run opens files; the rest is only counted.
CORECUBE_DRY_RUN_SECONDS = env.integer("CORECUBE_DRY_RUN_SECONDS", 300, low=0, high=86_400)
#: Seconds without a heartbeat after which a worker counts as lost, and others take over its items.
CORECUBE_LOST_SECONDS = env.integer("CORECUBE_LOST_SECONDS", 30, low=2, high=3600)
#: Query vectors cached per process; 0 for none.
CORECUBE_QUERY_CACHE = env.integer("CORECUBE_QUERY_CACHE", 2000, low=0, high=1_000_000)
#: Sentence vectors cached per process; 0 for none.
CORECUBE_SENTENCE_CACHE = env.integer("CORECUBE_SENTENCE_CACHE", 10_000, low=0, high=1_000_000)
#: Whether a starting process warms up models and indexes in the background.
CORECUBE_WARM_UP = env.flag("CORECUBE_WARM_UP", default=True)
#: Interval in seconds for storing when documents were last read; 0 for never.
CORECUBE_ACCESS_SECONDS = env.integer("CORECUBE_ACCESS_SECONDS", 5, low=0, high=3600)
#: Additional threads for search legs; 0 runs the legs in sequence. More threads than cores would only use more database
#: sessions with cold caches.
CORECUBE_LEG_THREADS = env.integer("CORECUBE_LEG_THREADS", min(4, cores()), low=0, high=64)
#: Whether this machine has a BM25 index; without one, presets use their other legs.
CORECUBE_BM25 = env.flag("CORECUBE_BM25", default=True)
#: Whether this machine has vector files; without them, PostgreSQL alone searches vectors.
CORECUBE_VECTORS = env.flag("CORECUBE_VECTORS", default=True)
#: Threads for quoting and checking answers.
CORECUBE_ANSWER_THREADS = env.integer("CORECUBE_ANSWER_THREADS", 2, low=1, high=64)
#: Where uploads are stored, an address such as `s3://bucket/prefix`; empty for a folder on this machine. The object
#: store is by default Amazon's.
CORECUBE_UPLOADS_TO = env.bucket("CORECUBE_UPLOADS_TO")
CORECUBE_UPLOADS_S3_ENDPOINT = env.url("CORECUBE_UPLOADS_S3_ENDPOINT")
CORECUBE_UPLOADS_S3_REGION = env.text("CORECUBE_UPLOADS_S3_REGION", "us-east-1")
CORECUBE_UPLOADS_S3_ACCESS_KEY = env.secret("CORECUBE_UPLOADS_S3_ACCESS_KEY")
CORECUBE_UPLOADS_S3_SECRET_KEY = env.secret("CORECUBE_UPLOADS_S3_SECRET_KEY")
if CORECUBE_UPLOADS_TO and not (CORECUBE_UPLOADS_S3_ACCESS_KEY and CORECUBE_UPLOADS_S3_SECRET_KEY):
    raise ImproperlyConfigured("CORECUBE_UPLOADS_TO requires CORECUBE_UPLOADS_S3_ACCESS_KEY and _SECRET_KEY.")
#: Where backups are stored, a folder or `s3://bucket/prefix`; empty for no scheduled ones.
CORECUBE_BACKUP_TO = env.backup_place("CORECUBE_BACKUP_TO")
#: Hours between scheduled backups, and how many are retained.
CORECUBE_BACKUP_EVERY_HOURS = env.integer("CORECUBE_BACKUP_EVERY_HOURS", 24, low=1, high=8_760)
CORECUBE_BACKUP_KEEP = env.integer("CORECUBE_BACKUP_KEEP", 7, low=1, high=10_000)
#: Encrypts backups; empty for no encryption.
CORECUBE_BACKUP_PASSPHRASE = env.secret("CORECUBE_BACKUP_PASSPHRASE")
#: The object store of backups, by default Amazon's, and its keys.
CORECUBE_BACKUP_S3_ENDPOINT = env.url("CORECUBE_BACKUP_S3_ENDPOINT")
CORECUBE_BACKUP_S3_REGION = env.text("CORECUBE_BACKUP_S3_REGION", "us-east-1")
CORECUBE_BACKUP_S3_ACCESS_KEY = env.secret("CORECUBE_BACKUP_S3_ACCESS_KEY")
CORECUBE_BACKUP_S3_SECRET_KEY = env.secret("CORECUBE_BACKUP_S3_SECRET_KEY")
