# Everything a person types. Each target does its own set-up; see `make help`.

.DEFAULT_GOAL := help
SHELL := /bin/sh
# A fresh rustup is not yet in the PATH of the shell that installed it.
export PATH := $(PATH):$(HOME)/.cargo/bin

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## the pair over emulated links, before and after: about 5 minutes and the build
	@scripts/setup
	cargo build --release --locked --package longwire
	target/release/longwire demo

.PHONY: package
package: ## the Debian package, in out/package
	@scripts/setup dpkg-shlibdeps:dpkg-dev
	cargo build --release --locked --package longwire
	scripts/package

.PHONY: test
test: ## everything that must hold: format, rules, lints, documents, licences, tests
	@scripts/setup
	-@scripts/setup chromium:chromium
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo xtask tidy
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy --manifest-path fuzz/Cargo.toml --target-dir target --no-default-features \
		--locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
	@scripts/deny
	cargo test --workspace --locked --no-fail-fast

.PHONY: bench
bench: ## measurements that want an idle machine and minutes: each program of bench/ in turn
	@scripts/setup
	cargo build --release --locked --package longwire --package longwire-bench
	@status=0; for program in bench/src/bin/*.rs; do \
		program=target/release/$$(basename $$program .rs); \
		echo "$$program"; $$program || status=1; \
	done; exit $$status

.PHONY: interop
interop: ## against clients and servers of others, one folder of interop/ each
	@scripts/setup python3:python3-venv curl:curl mvn:maven javac:default-jdk-headless \
		/usr/sbin/nginx:nginx /usr/sbin/squid:squid /usr/sbin/haproxy:haproxy \
		go:golang openssl:openssl nsenter:util-linux ip:iproute2 tshark:tshark \
		/usr/sbin/mosquitto:mosquitto mosquitto_pub:mosquitto-clients \
		coap-client-openssl:libcoap3-bin /usr/sbin/bearerbox:kannel \
		wbxml2xml:libwbxml2-utils valgrind:valgrind
	interop/run

.PHONY: faults
faults: ## the pair while links, processes, disks and descriptors fail: RUNS=1000, as root
	@scripts/setup python3:python3 nsenter:util-linux ss:iproute2
	cargo build --release --locked --package longwire
	LONGWIRE=$(CURDIR)/target/release/longwire interop/faults/run.py --runs $(or $(RUNS),1000)

.PHONY: fuzz
fuzz: ## each decoder and machine on any input, SECONDS_EACH=60 a target
	@scripts/setup c++:g++
	scripts/fuzz
