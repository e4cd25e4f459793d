# What can be done here. `./bootstrap RECIPE` installs what is missing first.

export CARGO_TERM_COLOR := env("CARGO_TERM_COLOR", "auto")

# The list of recipes
default:
    @just --list

# The program and its plugins: target/release/packhouse, target/release/plugins/, and their compiled code in target/release/compiled/
build: plugins
    cargo build --release --locked --workspace --bin packhouse
    target/release/packhouse plugins precompile --into target/release/compiled

# Each plugin as a component in target/release/plugins/
plugins:
    cargo run --release --locked --quiet --bin xtask -- plugins

# Hostile components that the sandbox tests load
guests:
    cargo run --release --locked --quiet --bin xtask -- guests

# Build, then serve; arguments go to `packhouse serve`
run *ARGS: build
    target/release/packhouse serve {{ ARGS }}

# Everything that a change must pass
test: lint build guests (suite "--exclude packhouse-chart-tests" "")

# The same, with the large sizes and the many rounds, with the packages, and with made-up input
test-all: lint build guests (suite "" "PACKHOUSE_TEST_LONG=1") test-shipped test-dist (fuzz-all "20")

# The same as `test`, by what `just dist` ships: a program that is optimised as a whole
test-shipped: build guests (dist "tarball") (suite "--exclude packhouse-chart-tests" ("PACKHOUSE_TEST_PROGRAM=" + justfile_directory() / "target/packages/stage/packhouse"))

# Every package, in target/packages: tarball, Debian package, container image, wheel, Helm chart; or those named
dist *KINDS:
    packaging/dist {{ KINDS }}

# Makes every package, installs each where nothing else is, and uses it; it takes half an hour and more
test-dist: build dist
    @mkdir -p target && rm -f target/skipped.txt
    cargo test --workspace --release --locked --no-fail-fast --test dist
    @if [ -s target/skipped.txt ]; then sort -u target/skipped.txt; fi

# Formatting and clippy
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --release --locked -- -D warnings
    cargo test --workspace --release --locked --quiet --test lints
    @if command -v cargo-deny >/dev/null && command -v cargo-machete >/dev/null; then cargo deny --workspace check bans licenses sources && cargo machete; \
        else echo "skipped: cargo deny and cargo machete: ./bootstrap dependencies installs them" >&2; fi

# Licences, sources, known faults and duplicates of what we depend on, and what is named but not used
dependencies:
    cargo deny --workspace check
    cargo machete

# Tests wait for servers and clients for most of their time, so that more of them run at one time than there are cores.
threads := `echo $((3 * $(nproc)))`

[private]
suite LESS SETTINGS:
    @mkdir -p target && rm -f target/skipped.txt
    {{ SETTINGS }} cargo test --workspace {{ LESS }} --release --locked --no-fail-fast -- --test-threads={{ threads }}
    @if [ -s target/skipped.txt ]; then sort -u target/skipped.txt; fi

# One module of tests/tests, as in `just test-one maven_clients`, or a test of it: `just test-one maven_clients::NAME`
test-one NAME *ARGS: build
    cargo test --workspace --release --locked --test \
        "$(ls -d tests/tests/*/$(echo {{ NAME }} | sed 's/::.*//') tests/tests/*/$(echo {{ NAME }} | sed 's/::.*//').rs 2>/dev/null | head -n 1 | cut -d/ -f3)" \
        -- {{ NAME }} {{ ARGS }}

# Every test, with the first tier that runs it: change, nightly or release (docs/TESTING.md)
tiers:
    @cargo run --release --locked --quiet --bin xtask -- tiers

# The official OCI conformance suite, a program that you have built, against a server; VERSION is 1.1, dev, or 1.1.1 for the tag's
conformance PROGRAM VERSION="1.1": build
    PACKHOUSE_CONFORMANCE={{ absolute_path(PROGRAM) }} PACKHOUSE_CONFORMANCE_VERSION={{ VERSION }} \
        cargo test --workspace --release --locked --test clients -- oci_conformance --nocapture

# Servers of an older program, with its plugins beside it, replaced by this one's under load; `just dist tarball` of an older commit makes one
rolling PROGRAM: build
    PACKHOUSE_TEST_OLDER={{ absolute_path(PROGRAM) }} cargo test --workspace --release --locked --test faults -- rolling --nocapture

# Clients through proxies of upstreams outside: those that PACKHOUSE_LIVE_NPM, _PYTHON and _MAVEN name
live: build
    cargo test --workspace --release --locked --test live -- --nocapture

# Coverage that libFuzzer reads; the compiler of the rest will do, no nightly is needed
coverage := "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing"
fuzzed := "x86_64-unknown-linux-gnu"

# Made-up input for one of fuzz/targets, as in `just fuzz npm_publish 300`; needs g++ for libFuzzer itself
fuzz TARGET SECONDS="60": (fuzz-build "--bin" TARGET) (fuzz-run TARGET SECONDS)

# The same for each of them, as many at one time as there are cores
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

# Load and faults over two servers, then three, with PostgreSQL and S3; what clients saw is checked: `just chaos --minutes 60 --seed 7`
chaos *ARGS: build
    cargo run --release --locked --quiet -p packhouse-chaos -- {{ ARGS }}

# The picture in README.md, made anew by the test of it
picture: build
    PACKHOUSE_PICTURE="$PWD/docs/portal.webp" cargo test --workspace --release --locked --test portal -- portal_picture

# What the server is to reach, as one table of ratios: `just bench --only kept`, `just bench --help`
bench *ARGS: build
    cargo bench --locked -p packhouse-benches --bench goals -- {{ ARGS }}

# Reads through a plugin and without it, and packages of 2,000 versions beside small ones, as ratios
bench-parts: build
    cargo bench --locked -p packhouse-benches --bench get_through_plugin --bench many_versions

# npm, pip and Maven with empty caches through a warm proxy, beside verdaccio and devpi: benches/clients/README.md
bench-clients *ARGS: build
    python3 benches/clients/run.py {{ ARGS }}

# Formats all code
fmt:
    cargo fmt --all
