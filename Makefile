# What a developer needs day to day; `make` lists it.

export PATH := $(CURDIR)/target/tools/bin:$(PATH)
TARGET := $(or $(CARGO_TARGET_DIR),target)

help: ## lists the targets
	@sed -n 's/^\([a-z-]*\):.* ## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

run: ## runs Assay with its own PostgreSQL and NATS, data in ./data
	@deploy/local/install
	@cargo build --release --locked -p assay --bin assay
	@exec $(TARGET)/release/assay

test: ## checks and tests everything, from nothing
	@deploy/local/install test
	@$(MAKE) --no-print-directory check
	@# Built as the tests are, so that dependencies are built once.
	@cargo build --workspace --all-targets --locked
	@$(TARGET)/debug/with-servers cargo nextest run --workspace --locked --profile ci

check: ## format and lints
	@cargo fmt --all --check
	@cargo clippy --workspace --all-targets --locked -- -D warnings

chart: ## checks the Helm chart, and that the programs run as it starts them
	@deploy/local/install charts
	@# As for tests, which have built it all.
	@cargo build --workspace --all-targets --locked
	@deploy/kubernetes/check --built

supply-chain: ## checks licences, sources and advisories of crates, and lists them
	@deploy/local/install supply-chain
	@deploy/local/supply-chain

test-compose: ## builds and tries the containers of docker-compose.yml, which needs Docker
	@python3 deploy/compose/test

servers: ## a shell with a PostgreSQL for tests in $ASSAY_TEST_DATABASE_URL
	@deploy/local/install test
	@cargo run -q -p assay-testkit --bin with-servers -- "$${SHELL:-bash}"

measure: ## the figures of docs/performance.md, in some minutes
	@deploy/local/install
	@cargo build --release --locked -p assay --bin assay
	@deploy/local/measure

fairness: ## how little one customer slows another one down, in some minutes
	@deploy/local/install
	@cargo build --release --locked -p assay --bin assay
	@deploy/local/fairness

deletion: ## what the deletion of a project with a million test cases costs others, in some minutes
	@deploy/local/install
	@cargo build --release --locked -p assay --bin assay
	@deploy/local/deletion

clean: ## removes what was built, not the data
	@cargo clean

.PHONY: help run test check chart supply-chain test-compose servers measure fairness deletion clean
