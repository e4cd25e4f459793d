# Tasks of this checkout. `./bootstrap RECIPE` first installs the tools that a recipe needs.

export CARGO_TERM_COLOR := env("CARGO_TERM_COLOR", "auto")

# The list of recipes
default:
    @just --list

# Builds the program and its plugins: target/release/packhouse, plugins/ and their compiled code in compiled/
build: plugins
    cargo build --release --locked --workspace --bin packhouse
    target/release/packhouse plugins precompile --into target/release/compiled

# Builds each plugin as a component in target/release/plugins/
plugins:
    cargo run --release --locked --quiet --bin xtask -- plugins

# Builds the hostile components that the sandbox tests load
guests:
    cargo run --release --locked --quiet --bin xtask -- guests

# Builds and serves; arguments go to `packhouse serve`
run *ARGS: build
    target/release/packhouse serve {{ ARGS }}

# Runs everything that a change must pass
test: lint build guests (suite "--exclude packhouse-chart-tests" "")

# Runs the same with large sizes, many rounds, packages and fuzzing
test-all: lint build guests (suite "" "PACKHOUSE_TEST_LONG=1") test-shipped test-dist (fuzz-all "20")

# Runs the tests with the program that `just dist` ships, which is optimised as a whole
test-shipped: build guests (dist "tarball") (suite "--exclude packhouse-chart-tests" ("PACKHOUSE_TEST_PROGRAM=" + justfile_directory() / "target/packages/stage/packhouse"))

# Makes the packages in target/packages, or the named ones: tarball, Debian package, container image, wheel, Helm chart
dist *KINDS:
    packaging/dist {{ KINDS }}

# Makes every package, installs each in an empty system, and uses it; takes half an hour or more
test-dist: build dist
    @mkdir -p target && rm -f target/skipped.txt
    cargo test --workspace --release --locked --no-fail-fast --test dist
    @if [ -s target/skipped.txt ]; then sort -u target/skipped.txt; fi

# Checks formatting, clippy, the rules about the sources, and their readability
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --release --locked -- -D warnings
    cargo test --workspace --release --locked --quiet --test lints
    cargo run --release --locked --quiet --bin xtask -- lint
    @if command -v cargo-deny >/dev/null && command -v cargo-machete >/dev/null; then cargo deny --workspace check bans licenses sources && cargo machete; \
        else echo "skipped: cargo deny and cargo machete: ./bootstrap dependencies installs them" >&2; fi

# Checks dependencies: licences, sources, known faults, duplicates and unused ones
dependencies:
    cargo deny --workspace check
    cargo machete

# Tests mostly wait for servers and clients, so more of them run in parallel than there are cores.
threads := `echo $((3 * $(nproc)))`

[private]
suite LESS SETTINGS:
    @mkdir -p target && rm -f target/skipped.txt
    {{ SETTINGS }} cargo test --workspace {{ LESS }} --release --locked --no-fail-fast -- --test-threads={{ threads }}
    @if [ -s target/skipped.txt ]; then sort -u target/skipped.txt; fi

# Runs one module of tests/tests, as in `just test-one maven_clients`, or one test: `just test-one maven_clients::NAME`
test-one NAME *ARGS: build
    cargo test --workspace --release --locked --test \
        "$(ls -d tests/tests/*/$(echo {{ NAME }} | sed 's/::.*//') tests/tests/*/$(echo {{ NAME }} | sed 's/::.*//').rs 2>/dev/null | head -n 1 | cut -d/ -f3)" \
        -- {{ NAME }} {{ ARGS }}

# Lists every test with the first tier that runs it: change, nightly or release (docs/internals/testing.md)
tiers:
    @cargo run --release --locked --quiet --bin xtask -- tiers

# Runs the official OCI conformance suite, a program that you built, against a server; VERSION is 1.1, dev, or 1.1.1 for the tag
conformance PROGRAM VERSION="1.1": build
    PACKHOUSE_CONFORMANCE={{ absolute_path(PROGRAM) }} PACKHOUSE_CONFORMANCE_VERSION={{ VERSION }} \
        cargo test --workspace --release --locked --test clients -- oci_conformance --nocapture

# Replaces servers of an older program with this one under load; `just dist tarball` of an older commit makes an older one with its plugins
rolling PROGRAM: build
    PACKHOUSE_TEST_OLDER={{ absolute_path(PROGRAM) }} cargo test --workspace --release --locked --test faults -- rolling --nocapture

# Runs clients through proxies of public upstreams, which PACKHOUSE_LIVE_NPM, _PYTHON and _MAVEN name
live: build
    cargo test --workspace --release --locked --test live -- --nocapture

# Coverage for libFuzzer. The usual compiler works; a nightly one is not needed.
coverage := "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing"
fuzzed := "x86_64-unknown-linux-gnu"

# Fuzzes one of fuzz/targets, as in `just fuzz npm_publish 300`; needs g++ for libFuzzer
fuzz TARGET SECONDS="60": (fuzz-build "--bin" TARGET) (fuzz-run TARGET SECONDS)

# Fuzzes each target, in parallel on all cores
fuzz-all SECONDS="20": (fuzz-build "--bins")
    basename --suffix .rs fuzz/targets/*.rs | xargs --max-procs "$(nproc)" --replace just fuzz-run {} {{ SECONDS }}

[private]
fuzz-build *WHAT:
    RUSTFLAGS="{{ coverage }}" cargo build --release --locked --manifest-path fuzz/Cargo.toml --target {{ fuzzed }} --target-dir target/fuzz {{ WHAT }}

[private]
fuzz-run TARGET SECONDS:
    @mkdir -p target/fuzz/corpus/{{ TARGET }} target/fuzz/found
    target/fuzz/{{ fuzzed }}/release/{{ TARGET }} -max_total_time={{ SECONDS }} -max_len=8192 -timeout=10 -rss_limit_mb=1024 \
        -artifact_prefix=target/fuzz/found/{{ TARGET }}- target/fuzz/corpus/{{ TARGET }} fuzz/seeds/{{ TARGET }}

# Runs load and faults on two servers, then three, with PostgreSQL and S3, and checks the answers: `just chaos --minutes 60 --seed 7`
chaos *ARGS: build
    cargo run --release --locked --quiet -p packhouse-chaos -- {{ ARGS }}

# Makes the picture in README.md again, with its test
picture: build
    PACKHOUSE_PICTURE="$PWD/docs/portal.webp" cargo test --workspace --release --locked --test portal -- portal_picture

# Measures the goals of the server as one table of ratios: `just bench --only cached`, `just bench --help`
bench *ARGS: build
    cargo bench --locked -p packhouse-benches --bench goals -- {{ ARGS }}

# Measures reads with and without a plugin, and packages of 2,000 versions beside small ones, as ratios
bench-parts: build
    cargo bench --locked -p packhouse-benches --bench get_through_plugin --bench many_versions

# Measures npm, pip and Maven with empty caches through a warm proxy, beside verdaccio and devpi: benches/clients/README.md
bench-clients *ARGS: build
    python3 benches/clients/run.py {{ ARGS }}

# Lowers the bounds of `xtask lint` to the current counts
lint-bounds:
    cargo run --release --locked --quiet --bin xtask -- lint --write

# Writes the reference pages in docs/reference, then the documentation as a website in target/docs
docs:
    cargo run --release --locked --quiet --bin packhouse -- docs --from . --into docs/reference
    @if command -v mdbook >/dev/null; then mdbook build docs; \
        else echo "skipped: mdbook: ./bootstrap docs installs it" >&2; fi

# Formats all code
fmt:
    cargo fmt --all
