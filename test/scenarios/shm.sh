#!/usr/bin/env bash
# The shared segment without a server (test/shm). `make test-shm` has Miri run the same tests, which takes minutes.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/tap.sh
. test/lib/tap.sh

said=$(PGBENCH_EXT_BUILD=0123456789abcdef CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/shm \
    cargo test --quiet --manifest-path test/shm/Cargo.toml 2>&1)
is $? 0 'its tests pass'
like "$said" 'test result: ok\. [4-9] passed; 0 failed' 'all of them'
done_testing
