"""A real OpenID Connect provider in a thread, and a browser that signs in through it."""

import base64
import copy
import functools
import hashlib
import io
import json
import threading
import warnings
from urllib.parse import parse_qs, parse_qsl, urlsplit

import jwt
import pytest
import requests
import werkzeug.serving

from corecube.oidc import provider as provider_module

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import flask
    import oidc_provider_mock

CLIENT = "corecube-client"
SECRET = "a secret of the client: 100 % ours"
START = "/login/provider/"
CALLBACK = "/login/provider/callback/"


class QuietHandler(werkzeug.serving.WSGIRequestHandler):
    def log_request(self, *args):
        pass


@functools.cache
def application():
    """Return the provider's application and its storage, which take long to make, and what the storage holds at first.

    Every test's provider has the same key.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        app = oidc_provider_mock.app()
    app.debug = False
    with app.test_request_context():
        app.preprocess_request()
        storage = flask.g.oidc_provider_mock_storage
    return app, storage, {name: copy.copy(value) for name, value in vars(storage).items()}


class Provider:
    """The provider, with a hand in what it answers: `answers[path]` takes and returns (status, headers, body)."""

    def __init__(self):
        app, self.storage, empty = application()
        vars(self.storage).update({name: copy.copy(value) for name, value in empty.items()})
        self._inner = app.wsgi_app
        self.answers = {}
        #: (path, query, form, headers) of every request.
        self.seen = []
        self.server = werkzeug.serving.make_server(
            "localhost", 0, self._answer, threaded=True, request_handler=QuietHandler
        )
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()

    @property
    def issuer(self):
        return f"http://localhost:{self.server.server_port}"

    def stop(self):
        if self.thread.is_alive():
            self.server.shutdown()
            self.thread.join()
            self.server.server_close()

    def knows(self, sub, **claims):
        """Give the provider an account, or change it."""
        requests.put(f"{self.issuer}/users/{sub}", json=claims, timeout=5)

    def sign(self, claims, *, algorithm="RS256", key=None, kid="own"):
        """Return a token of these claims, signed with the provider's own key unless another is given."""
        private = self.storage.jwk.as_dict(is_private=True)
        name = private["kid"] if kid == "own" else kid
        signer = jwt.PyJWK(private, algorithm="RS256").key if key is None else key
        return jwt.encode(claims, signer, algorithm=algorithm, headers={"kid": name} if name else {})

    def change_token(self, change, **how):
        """Let every ID token from now on say what `change` makes of its claims."""

        def answer(status, headers, body):
            told = json.loads(body)
            claims = jwt.decode(told["id_token"], options={"verify_signature": False})
            return status, headers, json.dumps({**told, "id_token": self.sign(change(claims), **how)}).encode()

        self.answers["/oauth2/token"] = answer

    def _answer(self, environ, start_response):
        content = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(content)
        request = werkzeug.wrappers.Request(environ)
        form = dict(parse_qsl(content.decode())) if request.method == "POST" else {}
        self.seen.append((request.path, request.args.to_dict(), form, dict(request.headers)))
        response = werkzeug.wrappers.Response.from_app(self._inner, environ)
        status, headers, body = response.status_code, dict(response.headers), response.get_data()
        if change := self.answers.get(request.path):
            status, headers, body = change(status, headers, body)
        headers.pop("Content-Length", None)
        return werkzeug.wrappers.Response(body, status, headers)(environ, start_response)


@pytest.fixture
def provider(settings, db):
    provider_module._cache.clear()
    running = Provider()
    settings.CORECUBE_OIDC_ISSUER = running.issuer
    settings.CORECUBE_OIDC_CLIENT_ID = CLIENT
    settings.CORECUBE_OIDC_CLIENT_SECRET = SECRET
    settings.AUTHENTICATION_BACKENDS = [
        "django.contrib.auth.backends.ModelBackend",
        "corecube.oidc.backend.ProviderBackend",
    ]
    yield running
    running.stop()


class Browser:
    """Goes from the sign-in page to the provider and back."""

    def __init__(self, client, running):
        self.client, self.provider = client, running

    def leave(self, following=""):
        """Return the address at the provider that the browser is sent to."""
        response = self.client.get(START + (f"?next={following}" if following else ""))
        assert response.status_code == 302
        return response.headers["Location"]

    def come_back(self, address, sub):
        """Sign in at the provider; return the path that it sends the browser back to."""
        response = requests.post(address, data={"sub": sub}, allow_redirects=False, timeout=5)
        assert response.status_code == 302, response.text
        back = urlsplit(response.headers["Location"])
        assert back.path == CALLBACK
        return f"{back.path}?{back.query}"

    def sign_in(self, sub, following=""):
        """Return the answer to the browser that comes back."""
        return self.client.get(self.come_back(self.leave(following), sub))

    @property
    def user_id(self):
        """Who is signed in; None for nobody."""
        return self.client.session.get("_auth_user_id")


@pytest.fixture
def browser(client, provider):
    return Browser(client, provider)


def challenge_of(verifier):
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def query_of(address):
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
