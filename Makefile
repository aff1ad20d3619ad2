# Building, installing and trying pgbench_ext.
#
# PG_CONFIG names the server to build for and install into. Only cargo is needed to
# build, without cargo-pgrx: the install SQL is written by hand in src/schema, whose
# README says which SQL is where, and merely joined together here.

PG_CONFIG ?= pg_config
export PG_CONFIG
export PATH := $(PATH):$(HOME)/.cargo/bin

# Asked only when a target needs them, because `make setup` may come before the server.
PG_MAJOR   = $(shell $(PG_CONFIG) --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')
PKGLIBDIR  = $(shell $(PG_CONFIG) --pkglibdir)
EXTENSIONS = $(shell $(PG_CONFIG) --sharedir)/extension
# By the server's own path, whatever the PATH finds: with another one cargo would build everything anew.
CARGO      = PGRX_PG_CONFIG_PATH="$$(ls "$$($(PG_CONFIG) --bindir)/pg_config" 2>/dev/null || command -v $(PG_CONFIG))" cargo
FEATURES   = --no-default-features --features pg$(PG_MAJOR)

VERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" pgbench_ext.control)
# quick: without optimisation at link time, as make demo and make test-full build it. dev: with assertions, as make test
# builds it.
PROFILE ?= release
ifeq ($(PROFILE),release)
# The places of panics would name folders of this machine, and the library would be another one in another folder. Only
# for what is given to others: the other profiles share more of what they compile without it.
REMAP = --config 'build.rustflags=["--remap-path-prefix=$(abspath $(or $(CARGO_TARGET_DIR),target))=/target", \
          "--remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo"]'
endif
LIBRARY := $(or $(CARGO_TARGET_DIR),target)/$(PROFILE:dev=debug)/libpgbench_ext.so
SQL     := build/pgbench_ext--$(VERSION).sql
INSTALL_SQL = src/schema/tables/*.sql src/schema/code/*.sql
# Updates: what changes in tables that are there, between what comes before and after the install SQL, which is run again.
DELTAS := $(notdir $(wildcard src/schema/upgrade/pgbench_ext--*--$(VERSION).sql))

.PHONY: help setup build build-sql install install-built deb deb-possible rpm rpm-possible dist release demo test test-full test-versions test-asserts test-valgrind test-caches test-shm storm bench bench-load bench-observation bench-connections bench-paced bench-cold bench-instructions bench-citus bench-orders fuzz check check-format check-lints check-scripts check-crates check-arm64 clean core-test crates oracle-test rust-install rust-version

help:
	@echo 'make setup     install what is missing to build, install and test (Debian, Ubuntu)'
	@echo 'make build     build the library and its install SQL'
	@echo 'make install   build, and install into the server of PG_CONFIG, by sudo where needed'
	@echo 'make deb       a package for the major version of PG_CONFIG, for Debian, Ubuntu and apt.postgresql.org, in build/'
	@echo 'make rpm       the same for yum.postgresql.org'
	@echo 'make dist      the archive for PGXN, in build/'
	@echo 'make release   all of these and SHA256SUMS; MAJORS="15 16 17 18 19" chooses versions, whose servers it downloads'
	@echo 'make demo      set up, build, and run the headline benchmark in a throwaway cluster'
	@echo 'make test      the tests, in twelve minutes; SUITE=check|core|regress|pgtap|faults|scenarios|citus|differential|storm and FILE=name choose, JOBS=n runs n files at a time'
	@echo 'make test-full  all tests, and those that depend on the version on servers of VERSIONS (16 17 18), which it downloads'
	@echo 'make test-versions  only those, on these servers'
	@echo 'make test-asserts  pg_regress, pgTAP, fault and differential tests on a server with assertions, which it builds; an hour'
	@echo 'make test-valgrind, test-caches  a run of each kind, loads, a sweep, captures, an import on that server under valgrind, or with all caches dropped all the time; ONLY=name chooses'
	@echo 'make test-shm  the shared segment without a server, under Miri where a nightly toolchain has it'
	@echo 'make storm     calls and faults at random, with all invariants after each round; SECS (120), SEED and ROUND choose'
	@echo 'make bench     this harness beside pgbench; CLIENTS, SECS, ROUNDS and WORKLOADS choose'
	@echo 'make bench-load  bench.load beside INSERT and pgbench -i; ROWS, SCALE, JOBS and ROUNDS choose'
	@echo 'make bench-observation  what observation costs; WORKLOAD, CLIENTS, PAIRS and ROWS choose'
	@echo 'make bench-connections  the wire driver beside pgbench; CLIENTS, KINDS, SECS and ROUNDS choose'
	@echo 'make bench-paced        latencies of both at the same rate; RATE, CLIENTS, SECS and ROUNDS choose'
	@echo 'make bench-cold  warm-ups after a cold start: none, 10 s, until throughput is steady; ROWS, CLIENTS, SECS, ROUNDS, LONG and WORKLOADS choose'
	@echo 'make bench-instructions  instructions per transaction, counted by callgrind, and the share of the extension in them; ROWS, SHORT, LONG and LIMIT choose'
	@echo 'make bench-citus  this harness beside pgbench on a Citus cluster of three nodes, where Citus is installed; CLIENTS, SECS, ROUNDS and SCALE choose'
	@echo 'make bench-orders  workload orders beside pgbench, and its load beside one psql; WAREHOUSES, CLIENTS, SECS, ROUNDS and PARTS choose'
	@echo 'make fuzz      libFuzzer on scripts, answers of servers, documents, logs and histograms; RUNS=1000000, TARGETS=wire and SANITIZER=address choose'
	@echo 'make check     formatting, lints of Rust and of the shell scripts, and licences and advisories of crates where cargo-deny is installed'
	@echo 'make check-arm64  whether it compiles for arm64'
	@echo 'make clean     remove what was built'
	@echo
	@echo 'PG_CONFIG=$(PG_CONFIG) says which server.'

setup:
	@scripts/setup test

# What cargo writes must belong to whoever works here: under `sudo make install` these
# targets go back to the user who called sudo, if this directory is theirs.
INVOKER := $(if $(filter 0,$(shell id -u)),$(filter-out root,$(filter $(SUDO_USER),$(shell stat -c %U .))))
ifneq ($(INVOKER),)

INVOKER_HOME := $(shell getent passwd $(INVOKER) | cut -d: -f6)

build build-sql check check-format check-lints check-scripts check-crates check-arm64 clean core-test crates oracle-test rust-install rust-version:
	@runuser -u $(INVOKER) -- env HOME=$(INVOKER_HOME) $(MAKE) --no-print-directory $@

else

build: build-sql
	$(CARGO) build --profile $(PROFILE) $(FEATURES) $(REMAP)

# The install SQL and its updates, which need no compiler.
build-sql:
	@mkdir -p build
	@{ printf '%s\n' '\echo Use "CREATE EXTENSION pgbench_ext" to load this file. \quit'; \
	   sed -e '/^@run_arguments@$$/{' -e 'r src/schema/run_arguments.sql' -e 'd' -e '}' $(INSTALL_SQL); } > $(SQL)
	@for delta in $(DELTAS); do \
	  { printf '%s\n' '\echo Use "ALTER EXTENSION pgbench_ext UPDATE" to load this file. \quit'; \
	    cat src/schema/upgrade/preamble.sql src/schema/upgrade/$$delta; \
	    sed -E -e 's/^CREATE (FUNCTION|VIEW) /CREATE OR REPLACE \1 /; s/^CREATE (TABLE|SEQUENCE|SCHEMA|INDEX|UNIQUE INDEX) /&IF NOT EXISTS /' \
	      -e '/^.echo /d' $(SQL); cat src/schema/upgrade/postamble.sql; } > build/$$delta || exit; done

check: check-format check-lints check-scripts check-crates

check-format:
	cargo fmt --all --check

check-lints:
	@cargo clippy --version >/dev/null 2>&1 || { echo 'skipped: there is no clippy; `rustup component add clippy`'; exit; }; \
	  set -x; $(CARGO) clippy --workspace --all-targets $(FEATURES) -- -D warnings

# What .shellcheckrc lets pass, it explains. A grep -q at the end of a pipe leaves before its writer, whose SIGPIPE is
# then what pipefail sees, by chance: `grep -q … < <(…)` has grep's own status.
check-scripts:
	@! grep -rnE '\| *grep -[a-zA-Z]*[qm]' .ci benches ci container scripts test
	@command -v shellcheck >/dev/null || { echo 'skipped: there is no shellcheck'; exit; }; \
	  echo shellcheck; grep -rlE '^(#!.*bash|# shellcheck shell=bash)' .ci benches ci container scripts test | \
	    xargs -P "$$(getconf _NPROCESSORS_ONLN)" -n 16 shellcheck

# The database of advisories comes from GitHub; where that cannot be reached, the copy of an earlier time serves.
check-crates:
	@cargo deny --version >/dev/null 2>&1 || { echo 'skipped: there is no cargo-deny; `cargo install --locked cargo-deny`'; exit; }; \
	  set -xe; cargo deny --locked check licenses bans sources; \
	  cargo deny fetch db 2>/dev/null || echo 'the database of advisories could not be fetched'; \
	  test -d "$${CARGO_HOME:-$$HOME/.cargo}"/advisory-dbs/advisory-db-* || { echo 'advisories were not checked'; exit; }; \
	  cargo deny --offline --locked check advisories

# Compiled alone, neither linked nor run: of arm64 are Rust's library and the C library's headers, the headers of
# PostgreSQL and OpenSSL are this machine's.
ARM64 = aarch64-unknown-linux-gnu
ARM64_INCLUDE ?= /usr/aarch64-linux-gnu/include

check-arm64:
	@[ -d "$$(rustc --print target-libdir --target $(ARM64))" ] || \
	   { echo 'skipped: there is no Rust for arm64; `rustup target add $(ARM64)`'; exit; }; \
	 [ -e $(ARM64_INCLUDE)/stdio.h ] || \
	   { echo 'skipped: $(ARM64_INCLUDE) is missing; `apt install libc6-dev-arm64-cross`, or set ARM64_INCLUDE'; exit; }; \
	 set -x; export BINDGEN_EXTRA_CLANG_ARGS_$(subst -,_,$(ARM64))='-isystem $(ARM64_INCLUDE)' CC_$(subst -,_,$(ARM64))=clang \
	   CFLAGS_$(subst -,_,$(ARM64))="-isystem $(ARM64_INCLUDE) -isystem /usr/include/$$(gcc -print-multiarch)" \
	   AARCH64_UNKNOWN_LINUX_GNU_OPENSSL_INCLUDE_DIR="$$(pkg-config --variable=includedir openssl)" \
	   AARCH64_UNKNOWN_LINUX_GNU_OPENSSL_LIB_DIR="$$(pkg-config --variable=libdir openssl)"; \
	 $(CARGO) check --target $(ARM64) $(FEATURES)

clean:
	cargo clean
	rm -rf build

# With the features of the whole workspace, so that what the library depends on is not compiled twice; the library itself
# has no tests and is not built.
core-test:
	$(CARGO) test --workspace $(FEATURES) --no-fail-fast

# Compares with the pgbench that PGBENCH_ORACLE names.
oracle-test:
	$(CARGO) test --workspace $(FEATURES) --test pgbench_oracle --no-fail-fast

rust-version:
	@rustc --version && rustfmt --version

# The toolchain of rust-toolchain.toml, which rustup's programs fetch at their first call unless that is turned off; other
# Rusts are as they are.
rust-install:
	@! command -v rustup >/dev/null || rustc --version >/dev/null 2>&1 || rustup toolchain install --no-self-update

crates:
	@cargo fetch --locked --quiet

endif

# $(call put,MODE,FILE,DESTINATION): by rename, because a running server has the old
# library mapped, and only when something changed.
put = cmp -s $(2) $(3) || { $(SUDO) install -m $(1) $(2) $(3).new && \
      $(SUDO) mv -f $(3).new $(3) && echo installed $(3); }
SUDO = $(shell test -n "$(DESTDIR)" || test -w $(PKGLIBDIR) -a -w $(EXTENSIONS) || test "$$(id -u)" = 0 || echo sudo)

install: build
	@$(MAKE) --no-print-directory install-built

install-built:
	@$(if $(DESTDIR),mkdir -p $(DESTDIR)$(PKGLIBDIR) $(DESTDIR)$(EXTENSIONS))
	@$(call put,755,$(LIBRARY),$(DESTDIR)$(PKGLIBDIR)/pgbench_ext.so)
	@for f in pgbench_ext.control $(SQL) $(addprefix build/,$(DELTAS)); do \
	   $(call put,644,"$$f","$(DESTDIR)$(EXTENSIONS)/$${f##*/}") || exit; done

# Packages are for the folders of PGDG's servers, whatever those of PG_CONFIG's are: a library serves every server of the
# major version that it is built for. The same library is packaged as the same bytes, because files
# have the commit's time.
EPOCH = TZ=UTC0 SOURCE_DATE_EPOCH="$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || stat -c %Y META.json)}"
BUILT = $(shell $(PG_CONFIG) --version | sed -E 's/^PostgreSQL ([^ ]+).*/\1/')

# build/postgresql-MAJOR-pgbench-ext_VERSION_ARCHITECTURE.deb
deb: deb-possible build
	sed 's/PGVERSION/$(PG_MAJOR)/g; s/PGBUILT/$(BUILT)/' debian/control.in >debian/control
	debian/rules clean
	$(EPOCH) debian/rules binary
	debian/rules clean && rm debian/control
	@ls build/postgresql-$(PG_MAJOR)-pgbench-ext_*.deb

deb-possible:
	@command -v dh >/dev/null || { echo 'make deb needs debhelper: apt install debhelper' >&2; exit 1; }

# build/pgbench_ext_MAJOR-VERSION-RELEASE.ARCHITECTURE.rpm
RPM_FOLDER = $(CURDIR)/build/rpm

rpm: rpm-possible build
	@rm -rf $(RPM_FOLDER) build/pgbench_ext_$(PG_MAJOR)-*.rpm
	$(EPOCH) rpmbuild -bb --quiet -D '_topdir $(RPM_FOLDER)' -D '_rpmdir $(CURDIR)/build' -D 'sources $(CURDIR)' \
	  -D 'pg_major $(PG_MAJOR)' -D 'pg_built $(BUILT)' -D 'extension_version $(VERSION)' rpm/pgbench_ext.spec
	@rm -rf $(RPM_FOLDER)
	@ls build/pgbench_ext_$(PG_MAJOR)-*.rpm

rpm-possible:
	@command -v rpmbuild >/dev/null || { echo 'make rpm needs rpmbuild: dnf install rpm-build, or apt install rpm' >&2; exit 1; }

# What PGXN takes: all that is committed.
dist:
	@mkdir -p build
	TZ=UTC0 git archive --format=zip --prefix=pgbench_ext-$(VERSION)/ -o build/pgbench_ext-$(VERSION).zip HEAD

# For the server of PG_CONFIG, or for those that scripts/servers brings. A library that names folders of this machine is
# not released.
MAJORS ?=
PACKAGES = $(if $(shell command -v dh),deb) $(if $(shell command -v rpmbuild),rpm)

release:
	@[ -z "$$(git status --porcelain)" ] || { echo 'make release needs everything committed' >&2; exit 1; }
	@rm -f build/*.deb build/*.rpm build/*.zip build/SHA256SUMS
	@$(MAKE) --no-print-directory dist
	@$(if $(filter deb,$(PACKAGES)),,echo 'skipped: make deb needs debhelper')
	@$(if $(filter rpm,$(PACKAGES)),,echo 'skipped: make rpm needs rpmbuild')
	@for major in $(or $(MAJORS),here); do \
	   server='$(PG_CONFIG)'; [ $$major = here ] || server=$$(scripts/servers $$major) || exit; \
	   $(foreach kind,$(PACKAGES),$(MAKE) --no-print-directory $(kind) PG_CONFIG="$$server" || exit;) \
	   $(if $(REMAP),! grep -aqF -e '$(CURDIR)/' -e "$${CARGO_HOME:-$$HOME/.cargo}/" $(LIBRARY) || \
	     { echo '$(LIBRARY) names folders of this machine' >&2; exit 1; };) \
	 done
	@cd build && find . -maxdepth 1 -name '*.deb' -o -name '*.rpm' -o -name '*.zip' | sed 's/^..//' | LC_ALL=C sort | \
	  xargs sha256sum >SHA256SUMS && cat SHA256SUMS

demo:
	@scripts/demo

test:
	@SUITE="$(SUITE)" FILE="$(FILE)" test/run

VERSIONS ?= 16 17 18

test-full:
	@FULL=yes SERVERS="here $(VERSIONS)" SUITE="$(SUITE)" FILE="$(FILE)" test/run

# PG_CONFIG does not matter: each version has its own.
test-versions:
	@FULL=yes SERVERS="$(VERSIONS)" SUITE="$(SUITE)" FILE="$(FILE)" test/run

# Their server is built by scripts/servers 15-assert.
test-asserts:
	@SUITE="$(SUITE)" FILE="$(FILE)" test/asserts

test-valgrind test-caches:
	@ONLY="$(ONLY)" test/each_kind $(@:test-%=%)

# Miri: accesses, alignment, aliasing and races, with another order of the threads for each of its seeds.
MIRI_SEEDS ?= 8

test-shm:
	@export PGBENCH_EXT_BUILD=0123456789abcdef CARGO_TARGET_DIR="$(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/shm"; \
	  if cargo +nightly miri --version >/dev/null 2>&1; then \
	    set -x; MIRIFLAGS='-Zmiri-disable-isolation -Zmiri-many-seeds=0..$(MIRI_SEEDS)' \
	      cargo +nightly miri test --manifest-path test/shm/Cargo.toml; \
	  else \
	    echo 'without Miri: `rustup component add miri rust-src --toolchain nightly`'; \
	    set -x; cargo test --manifest-path test/shm/Cargo.toml; \
	  fi

storm:
	@FULL=yes SUITE=storm FILE=storm SECS="$(SECS)" SEED="$(SEED)" ROUND="$(ROUND)" test/run

bench:
	@benches/run

bench-load:
	@benches/load

bench-observation:
	@benches/observation

bench-connections:
	@benches/connections

bench-paced:
	@benches/paced

bench-cold:
	@benches/cold

bench-instructions:
	@benches/instructions

bench-orders:
	@benches/orders

bench-citus:
	@benches/citus

# What cargo-fuzz does, without its need of a nightly compiler: instrumented for coverage, and with SANITIZER=address
# against wrong accesses to memory, for which a stable compiler has to be told that this is meant.
RUNS ?= 1000000
TARGETS ?= script wire document log histogram
FUZZ  = $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/fuzz
HOST  = $(shell rustc -vV | sed -n 's/^host: //p')
COVER = -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table --cfg fuzzing
ifneq ($(SANITIZER),)
COVER += -Zsanitizer=$(SANITIZER)
FUZZ  := $(FUZZ)-$(SANITIZER)
endif

fuzz:
	$(if $(SANITIZER),RUSTC_BOOTSTRAP=1) RUSTFLAGS="$(COVER)" CARGO_TARGET_DIR=$(FUZZ) \
	  cargo build --release --target $(HOST) --manifest-path crates/fuzz/Cargo.toml
	@set -xe; for target in $(TARGETS); do \
	  mkdir -p $(FUZZ)/corpus/$$target; \
	  words=; [ ! -e crates/fuzz/dictionaries/$$target ] || words=-dict=crates/fuzz/dictionaries/$$target; \
	  $(FUZZ)/$(HOST)/release/$$target -runs=$(RUNS) -max_len=2000 -len_control=10 -timeout=10 $$words \
	    -artifact_prefix=$(FUZZ)/$$target- $(FUZZ)/corpus/$$target crates/fuzz/seeds/$$target; \
	done
