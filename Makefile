# Goals for people; `make help` lists them. Each goal does its own set-up: the distribution's packages (named when they are
# installed), a virtual environment in .venv, the build. A missing Rust toolchain is reported, never installed.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# The directory of the natural loads.
LOADS ?= ../shared/loads
# No test or goal depends on the configuration file of its user.
export IOSONAR_CONFIG :=
# Tests of properties draw the same inputs each time; another number draws others: make test SEED=7.
SEED ?= 1
export PROPTEST_RNG_SEED := $(SEED)
# The prefix of `make install` for the binary, its man pages and completions.
PREFIX ?= /usr/local
# A new toolchain of rustup may not be in this shell's path yet; losetup is in sbin.
export PATH := $(PATH):$(HOME)/.cargo/bin:/usr/local/sbin:/usr/sbin:/sbin
# Tests start Python hundreds of times; without bytecode it would compile all libraries each time.
export PYTHONDONTWRITEBYTECODE :=

BUILT = $(or $(CARGO_TARGET_DIR),target)/release/iosonar
SHARE = $(DESTDIR)$(PREFIX)/share
# Where debuggers and backtraces look for the symbols of a program beside it.
SYMBOLS = $(DESTDIR)$(PREFIX)/bin/.debug
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
VENV := .venv
BIN := $(VENV)/bin
# Python compiles the modules that it imports; pip would compile all.
PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
# The features, so the builds, of all libraries are the same in each of these goals. The program for tests has them, too.
CARGO_TEST := cargo test --locked --workspace --all-features
PYTEST = $(BIN)/pytest --hypothesis-seed=$(SEED)
FEATURES_dev := --features as-in-tests
SOURCES := $(shell find crates packaging -type f) Cargo.toml Cargo.lock pyproject.toml

.PHONY: help
help: ## list the goals
	@echo 'make GOAL, where GOAL is one of'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: system-for-demo system-for-record $(VENV)/libraries ## install compiler, clang and Python libraries; `demo` and `test` do it, too

.PHONY: demo
demo: setup $(VENV)/program-quick ## build, replay a load on a file, and draw the result
	$(BIN)/iosonar demo

.PHONY: test
test: system-for-test ## every check and every test, but those of `acceptance`
	$(MAKE) --jobs 2 built-tests setup $(VENV)/tools
	$(MAKE) $(VENV)/program-dev
	$(MAKE) --jobs 2 test-rust test-python lint test-without-clang

.PHONY: build
build: ## build the binary for release: target/release/iosonar
	tools/system.sh build record
	IOSONAR_VERSION="$$(tools/version.sh)" cargo build --release --locked --package iosonar

.PHONY: install
install: build ## install the binary, its symbols, man pages and completions under PREFIX (/usr/local)
	install -D -t $(DESTDIR)$(PREFIX)/bin $(BUILT)
	mkdir -p $(SYMBOLS)
	objcopy --only-keep-debug $(BUILT) $(SYMBOLS)/iosonar.debug
	cd $(SYMBOLS) && objcopy --strip-all --add-gnu-debuglink=iosonar.debug ../iosonar
	$(BUILT) man --out $(SHARE)/man/man1
	mkdir -p $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	$(BUILT) completions bash > $(SHARE)/bash-completion/completions/iosonar
	$(BUILT) completions zsh > $(SHARE)/zsh/site-functions/_iosonar
	$(BUILT) completions fish > $(SHARE)/fish/vendor_completions.d/iosonar.fish

# Hostile traces have a million calls, and distributions are tested with 10^9 numbers.
OPTIMISED := --config profile.dev.package.iosonar-files.opt-level=1 --config profile.dev.package.iosonar-workload.opt-level=2

.PHONY: acceptance
acceptance: system-for-test $(VENV)/tools $(VENV)/program-dev ## the tests that need the natural loads, and slow ones: make acceptance LOADS=DIR
	@test -d "$(LOADS)" || { echo "no directory $(LOADS); name that of the natural loads: make acceptance LOADS=DIR" >&2; exit 1; }
	tools/system.sh acceptance
	IOSONAR_LOADS="$(abspath $(LOADS))" $(CARGO_TEST) $(OPTIMISED) --test 'acceptance*'
	IOSONAR_LOADS="$(abspath $(LOADS))" $(PYTEST) -m 'acceptance or slow' -n 2
	$(MAKE) test-spark

# Takes ten minutes on a quiet machine, as all of the machine is emulated: no KVM, so that it runs anywhere.
.PHONY: campaign-emulated
campaign-emulated: $(VENV)/program-quick $(VENV)/emulated ## run a campaign with LVM and iSCSI in an emulated machine
	tools/campaign_emulated.sh $(BIN)

# Options of tests/scenarios/matrix.py.
SCENARIOS ?=

.PHONY: scenarios
scenarios: system-for-test $(VENV)/tools $(VENV)/program-quick ## diagnose runs with known causes, and print a confusion matrix
	$(BIN)/python tests/scenarios/matrix.py $(SCENARIOS)

.PHONY: test-spark
test-spark: system-for-test $(VENV)/spark $(VENV)/program-dev ## compare the results of a Spark cluster with those of the embedded engine
	tools/system.sh spark
	$(PYTEST) -m spark

.PHONY: bench
bench: build ## measure against other programs, as root on a quiet machine
	tools/system.sh bench
	python3 bench/fidelity.py --iosonar $(BUILT)
	python3 bench/asap.py --iosonar $(BUILT)
	python3 bench/wait.py --iosonar $(BUILT)
	python3 bench/live.py --iosonar $(BUILT)
	python3 bench/stalls.py --iosonar $(BUILT)
	python3 bench/busy_poll.py --iosonar $(BUILT)
	python3 bench/issuers.py --iosonar $(BUILT)
	python3 bench/dependencies.py --iosonar $(BUILT)
	python3 bench/iolog.py --iosonar $(BUILT)
	cargo run --release --locked --quiet --package iosonar-replay --example conflicts_speed
	cargo build --release -p iosonar-replay --example loop_alone
	python3 bench/null.py --iosonar $(BUILT) --loop target/release/examples/loop_alone
	python3 bench/convert.py --iosonar $(BUILT)
	python3 bench/described.py --iosonar $(BUILT)
	python3 bench/record_overhead.py $(BUILT)
	$(MAKE) bench-paper
	python3 bench/script.py --iosonar $(BUILT)
	cargo run --release --locked --quiet --package iosonar-workload --example script_speed
	$(MAKE) bench-files

# Some experiments read tables with the libraries of the Python half.
.PHONY: bench-paper
bench-paper: build $(VENV)/libraries ## the experiments of the Buttress paper, as root on a quiet machine
	tools/system.sh bench
	python3 bench/paper_delay.py --iosonar $(BUILT)
	$(BIN)/python bench/paper_replays.py --iosonar $(BUILT)
	python3 bench/paper_asap.py --iosonar $(BUILT)
	$(BIN)/python bench/cause_to_issue.py --iosonar $(BUILT)

.PHONY: bench-files
bench-files: build $(VENV)/libraries ## measure recording and replay of calls to files, as root on a quiet machine
	cargo build --release --locked --package iosonar-files --examples
	python3 bench/files_record.py --iosonar $(BUILT)
	python3 bench/files_replay.py --iosonar $(BUILT) --make $(dir $(BUILT))examples/make_calls
	$(BIN)/python bench/files_paper.py --iosonar $(BUILT)

.PHONY: bench-build
bench-build: system-for-record ## measure a build from nothing, and the size of its binary
	python3 bench/first_build.py

.PHONY: bench-report
bench-report: system-for-test $(VENV)/tools $(VENV)/program-quick ## measure the cost of reports, and the memory of all commands
	$(BIN)/python bench/report.py --report $(BIN)/iosonar-report
	$(BIN)/python bench/view.py --view $(BIN)/iosonar-view
	$(BIN)/python bench/view.py --follow --iosonar $(BIN)/iosonar --view $(BIN)/iosonar-view
	$(BIN)/python bench/diagrams.py /tmp/made/10000000.replay.parquet
	$(BIN)/python bench/memory.py --iosonar $(BIN)/iosonar

.PHONY: scale
scale: system-for-test $(VENV)/spark $(VENV)/program-quick ## measure clocks of hosts, many agents, and runs of many rows, as root
	tools/system.sh spark
	$(BIN)/python bench/clock.py
	$(BIN)/python bench/agents.py
	$(BIN)/python bench/rows.py 10000000
	$(BIN)/python bench/rows.py 100000000 --copies 10

.PHONY: lint dependencies
lint: system-for-test $(VENV)/tools dependencies
	cargo fmt --check
	cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
	cargo clippy --locked --workspace --test 'acceptance*' --all-features -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	python3 tools/check_words.py
	"$$(tools/system.sh --python)" tools/check_msrv.py
	shellcheck --shell=sh python/iosonar/campaign/hosts/host.sh
	shellcheck --shell=bash --severity=warning --exclude=$(SHELLCHECK_EXCLUDED) $(BASH_FILES)

# Variables of confs and modules are set and read in different files; scripts for hosts are in single quotes; `done` is also
# a word of the protocol between the shell of a leaf and the Python half.
SHELLCHECK_EXCLUDED := SC1007,SC1010,SC1090,SC1091,SC2016,SC2034,SC2154,SC2164,SC2178,SC2209
BASH_FILES := $(wildcard python/iosonar/campaign/*.sh python/iosonar/campaign/modules/*.sh \
	python/iosonar/campaign/defaults/*.conf python/iosonar/campaign/template/*.conf loads/*.sh loads/recipes/* \
	packaging/data/share/iosonar/compat/* tools/*.sh)

dependencies: | system-for-demo ## check that packages depend on each other as in ARCHITECTURE.md, and files without cycles
	"$$(tools/system.sh --python)" tools/check_dependencies.py

# Of programs that cargo builds, once.
CARGO_TOOLS := $(or $(CARGO_TARGET_DIR),target)/tools
$(CARGO_TOOLS)/bin/cargo-%: | system-for-demo
	cargo install --locked --quiet --root $(CARGO_TOOLS) --target-dir $(CARGO_TOOLS)/target cargo-$*
	rm -rf $(CARGO_TOOLS)/target

# Without its server, which the site does not need.
MDBOOK := 0.5.4
$(CARGO_TOOLS)/bin/mdbook: | system-for-demo
	cargo install --locked --quiet --root $(CARGO_TOOLS) --target-dir $(CARGO_TOOLS)/target --no-default-features \
		--features search mdbook@$(MDBOOK)
	rm -rf $(CARGO_TOOLS)/target

.PHONY: site
site: $(CARGO_TOOLS)/bin/mdbook $(VENV)/program-quick ## build the documentation as a site: target/site/html
	$(BIN)/python tools/site_of_documents.py $(BIN)/iosonar $< $(or $(CARGO_TARGET_DIR),target)/site

.PHONY: audit deny doc fuzz-smoke
audit: deny doc fuzz-smoke ## check dependencies and the documentation of the code, and fuzz each reader for seconds
deny: $(CARGO_TOOLS)/bin/cargo-deny ## check licences, sources and versions of the dependencies (deny.toml)
	$< --locked check licenses bans sources
doc: system-for-record ## build the documentation of the code
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --workspace --all-features --document-private-items
fuzz-smoke: $(CARGO_TOOLS)/bin/cargo-fuzz system-for-record ## fuzz each reader for five seconds
	PATH="$(abspath $(CARGO_TOOLS))/bin:$$PATH" fuzz/run.py --each 5s --seed 1 --dev

# Builds all tests once, with both processors, before other goals need them. The binary in .venv shares its libraries.
.PHONY: built-tests
built-tests: system-for-test
	$(CARGO_TEST) --no-run

.PHONY: test-rust test-python
test-rust: system-for-test ## the tests of the Rust half
	$(CARGO_TEST)

# A missing program in CLANG makes the build script behave as without clang. With settings of their own, these builds of the
# recorders do not replace those of the other tests. A build that has clang after all fails this test instead of ignoring it.
WITHOUT_CLANG := CLANG=no-clang-here $(CARGO_TEST) --config profile.dev.package.iosonar-files.debug=false \
	--config profile.dev.package.iosonar-record.debug=false
.PHONY: test-without-clang
test-without-clang: system-for-test ## test the build without clang, and the error of `record`
	$(WITHOUT_CLANG) --test without_clang -- --include-ignored

test-python: system-for-test $(VENV)/tools $(VENV)/program-dev ## the tests of the Python half
	$(PYTEST) --numprocesses 2

.PHONY: system-for-demo system-for-record system-for-test
system-for-demo:
	@tools/system.sh build python
# Recording needs clang at build time; all else works without it.
system-for-record:
	@tools/system.sh 'record?'
system-for-test:
	@tools/system.sh build record python test

# The dependencies of the Python half and of its tests, in versions that are known to work together.
$(VENV)/libraries: pyproject.toml python/requirements.lock | system-for-demo
	"$$(tools/system.sh --python)" -m venv $(VENV)
	$(BIN)/python tools/requirements.py | $(PIP_INSTALL) --constraint python/requirements.lock --requirement /dev/stdin
	touch $@

$(VENV)/tools: $(VENV)/libraries
	$(BIN)/python tools/requirements.py test | $(PIP_INSTALL) --constraint python/requirements.lock --requirement /dev/stdin
	touch $@

$(VENV)/emulated: $(VENV)/libraries
	tools/system.sh emulated
	$(PIP_INSTALL) 'virtme-ng>=1.30'
	touch $@

$(VENV)/spark: $(VENV)/tools
	$(BIN)/python tools/requirements.py spark | $(PIP_INSTALL) --constraint python/requirements.lock --requirement /dev/stdin
	touch $@

# Changes when clang is installed or removed, so that the program is built again, with or without recording.
$(VENV)/clang: $(VENV)/libraries system-for-record
	@found=$$(command -v clang || true); echo "$$found" | cmp --quiet - $@ || echo "$$found" >$@

# Both halves: the binary in that profile of Cargo.toml, and the Python half as an editable installation. Cargo runs first,
# because pip would hide its progress.
$(VENV)/program-%: $(VENV)/libraries $(VENV)/clang $(SOURCES)
	rm -f $(VENV)/program-*
	cargo build --profile $* --locked --package iosonar $(FEATURES_$*)
	PATH="$(abspath $(BIN)):$$PATH" MATURIN_PEP517_ARGS='--profile $* --locked $(FEATURES_$*)' \
		$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	touch $@

# The static binary, and packages of it and of the Python half, in dist/: see docs/packages.md.
STATIC = dist/iosonar-$(VERSION)-$*-linux-musl
OBJCOPY_x86_64 := objcopy
OBJCOPY_aarch64 := aarch64-linux-gnu-objcopy
PACKAGES := PYTHONPATH=tools $(BIN)/python -m packages

.PHONY: static static-x86_64 static-aarch64
static: static-x86_64 ## build the binary without a C library of its host: dist/iosonar-VERSION-x86_64-linux-musl
static-x86_64 static-aarch64: static-%: $(VENV)/libraries
	tools/system.sh build record static-$*
	tools/static.sh $* cargo build --release --locked --package iosonar
	$(PACKAGES) strip $(or $(CARGO_TARGET_DIR),target)/$*-unknown-linux-musl/release/iosonar $(STATIC) --objcopy $(OBJCOPY_$*)

# maturin finds the binary built.
.PHONY: wheel wheel-test
wheel: static-x86_64 ## make a wheel with both halves, for any Linux on x86-64: dist/iosonar-VERSION-py3-none-….whl
	rm -rf target/static-wheel dist/*.whl
	PATH="$(abspath $(BIN)):$$PATH" tools/static.sh x86_64 $(BIN)/maturin build --quiet --release --locked --out target/static-wheel
	SOURCE_DATE_EPOCH=$$(tools/version.sh --epoch) $(PACKAGES) wheel target/static-wheel/*.whl x86_64 \
		dist/iosonar-$(VERSION)-x86_64-linux-musl dist

wheel-test: ## install the wheel in dist/ in a new environment, run the demo, and print how long both took
	tools/wheel_test.sh

.PHONY: demo-test
demo-test: $(VENV)/program-dev ## make a wheel of the program for tests, install it in a new environment, and time its demo
	rm -rf target/dev-wheel
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/maturin build --quiet --profile dev --locked $(FEATURES_dev) --out target/dev-wheel
	tools/wheel_test.sh target/dev-wheel/*.whl

# One command: the version in all files, the changelog, packages, site and checksums.
.PHONY: release
release: | system-for-demo ## tag a version here, and make its packages and its site in dist/: make release VERSION=X.Y.Z
	tools/release.sh $(VERSION)
	rm -rf dist
	$(MAKE) packages site
	tar --create --file dist/iosonar-$(VERSION)-site.tar --sort=name --owner=0 --group=0 --numeric-owner \
		--mtime=@$$(tools/version.sh --epoch) --transform 's,^html,iosonar-$(VERSION),' \
		--directory $(or $(CARGO_TARGET_DIR),target)/site html
	$(PACKAGES) checksums dist
	@echo "To publish: git push --follow-tags, and the files in dist/"

.PHONY: packages packages-test
packages: wheel ## make deb and rpm packages, the list of what is in them, and checksums in dist/
	tools/system.sh packages
	SOURCE_DATE_EPOCH=$$(tools/version.sh --epoch) $(PACKAGES) packages x86_64 \
		dist/iosonar-$(VERSION)-x86_64-linux-musl dist/*.whl dist target/packages
	$(PACKAGES) checksums dist

packages-test: ## install, run and remove the packages in dist/ in a new Debian below target/, as root
	tools/system.sh packages-test
	tools/packages_test.sh

.PHONY: static-test
static-test: $(VENV)/emulated ## try the static binary in dist/ in user lands of Debian, and on an emulated kernel, as root
	tools/system.sh static-test
	tools/static_test.sh $(abspath $(BIN))

.PHONY: install-test
install-test: setup ## run the commands of the README that install, and install the packaged crates
	tools/install_test.sh

.PHONY: image-test
image-test: ## build and run the images of what is in dist/, as root
	tools/system.sh image-test
	tools/image_test.sh

EXAMPLE_LOADS := python/iosonar/campaign/example-load/artificial

.PHONY: example-loads
example-loads: build ## generate the example loads of campaigns again
	$(BUILT) generate bursts $(EXAMPLE_LOADS)/bursts-ultrafine.readwrite.1b.1.load.gz --duration 80s --overwrite
	$(BUILT) generate poisson $(EXAMPLE_LOADS)/steady.readwrite.1.load.gz --duration 60s --rate 200 \
		--size 4k:70,64k:30 --positions 'zipf exponent=1.1' --overwrite

.PHONY: loads
loads: build ## record the natural loads of loads/ again, as root, in two hours
	tools/system.sh loads
	IOSONAR=$(abspath $(BUILT)) loads/record.sh

.PHONY: loads-package
loads-package: ## pack the natural loads: dist/iosonar-loads-VERSION.tar
	mkdir -p dist
	tar --create --file dist/iosonar-loads-$(VERSION).tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner \
		--transform 's,^,iosonar-loads-$(VERSION)/,' --directory loads README.md $(notdir $(wildcard loads/*.parquet))
	ls -l dist/iosonar-loads-$(VERSION).tar

.PHONY: lock
lock: | system-for-demo ## update python/requirements.lock to the newest versions
	rm -rf $(VENV)-lock
	"$$(tools/system.sh --python)" -m venv $(VENV)-lock
	$(VENV)-lock/bin/python tools/requirements.py test spark | $(VENV)-lock/bin/pip install --quiet --requirement /dev/stdin
	$(VENV)-lock/bin/pip freeze > python/requirements.lock
	rm -rf $(VENV)-lock

.PHONY: clean
clean: ## remove all build output, the virtual environment and the demo's pictures
	cargo clean
	rm -rf $(VENV) demo
