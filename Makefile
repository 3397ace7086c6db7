# Commands for development; `make` lists them.

export PATH := $(CURDIR)/target/tools/bin:$(PATH)
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Many tests wait some of the time, and up to two of them most of it.
TEST_THREADS := $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN) + 1)))

# The programs that `make bench` builds.
MEASURED := -p assay-bench -p assay -p assay-gateway -p assay-identity -p assay-catalog -p assay-execution \
	-p assay-notification
LINT := cargo clippy --workspace --all-targets --locked -- -D warnings
ROW := read
SHAPE := one

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.* ## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

run: ## run Assay with its own PostgreSQL and NATS, data in ./data
	@deploy/local/install
	@[ -x $(TARGET)/local/assay ] || echo \
		'Building Assay. With two processors, the first time takes about six minutes; later it is quick.'
	@cargo build --profile local --locked -p assay --bin assay
	@exec $(TARGET)/local/assay

test: ## run all checks and tests, installing what they need
	@deploy/local/install test
	@$(MAKE) --no-print-directory check
	@# With the features of the tests, so that dependencies are built once.
	@cargo build --workspace --all-targets --locked
	@$(TARGET)/debug/with-servers cargo nextest run --workspace --locked --profile ci \
		--test-threads $(TEST_THREADS)

check: language ## check language, modules, format and lints
	@deploy/local/modules
	@cargo fmt --all --check
	@$(LINT)

language: ## check the language of code and documents
	@deploy/local/language

chart: ## check the Helm chart, and that the programs run as it starts them
	@deploy/local/install charts
	@# The same build as for the tests.
	@cargo build --workspace --all-targets --locked
	@deploy/kubernetes/check --built

supply-chain: ## check licences, sources and advisories of crates, and write a bill of materials
	@deploy/local/install supply-chain
	@deploy/local/supply-chain

conformance: ## send 100,000 generated requests and check the answers; takes twenty minutes
	@deploy/local/install test
	@cargo build --workspace --all-targets --locked
	@ASSAY_CONFORMANCE_SECONDS=$${ASSAY_CONFORMANCE_SECONDS:-1200} \
		ASSAY_CONFORMANCE_GENERATORS=$$(getconf _NPROCESSORS_ONLN) \
		$(TARGET)/debug/with-servers cargo nextest run --workspace --locked --profile long \
		--success-output immediate -E 'test(/^conformance::/)'

large-files: ## upload a file and an artifact of 5 GiB, the file over connections that break
	@deploy/local/install test
	@cargo build --workspace --all-targets --locked
	@ASSAY_LARGE_FILE_MIB=5120 $(TARGET)/debug/with-servers cargo nextest run --workspace --locked \
		--profile long -E 'test(/client_of_npm_uploads|larger_than_a_message/)'

chaos: ## attack two replicas of every program for minutes: ASSAY_CHAOS_SECONDS=420
	@deploy/local/install test
	@cargo build --workspace --all-targets --locked
	@ASSAY_CHAOS_SECONDS=$${ASSAY_CHAOS_SECONDS:-420} $(TARGET)/debug/with-servers cargo nextest run \
		--workspace --locked --profile long --success-output immediate -E 'test(/^chaos::/)'

receivers: ## upload 10,000 reports while programs are killed, and compare what receivers have rebuilt; 34 minutes
	@deploy/local/install test
	@cargo build --workspace --all-targets --locked
	@ASSAY_RECEIVER_UPLOADS=$${ASSAY_RECEIVER_UPLOADS:-10000} $(TARGET)/debug/with-servers cargo nextest run \
		--workspace --locked --profile long -E 'test(/after_kills_of_every_program/)'

test-agents: ## run the agents of ReportPortal from their package indexes against a started Assay
	@deploy/local/install test
	@deploy/local/install agents
	@cargo build --workspace --all-targets --locked
	@$(TARGET)/debug/with-servers cargo nextest run --workspace --locked --run-ignored all -E 'test(/^agents::/)'

test-tools: ## run 40 test tools, and compare what Assay shows with what they print; takes minutes
	@deploy/local/install test
	@deploy/local/install tools
	@cargo build --workspace --all-targets --locked
	@$(TARGET)/debug/with-servers cargo nextest run --workspace --locked --profile long --run-ignored all \
		-E 'test(/^tools::/)'

test-compose: ## build and test the containers of docker-compose.yml; needs Docker
	@python3 deploy/compose/test

servers: ## open a shell with a PostgreSQL for tests in $ASSAY_TEST_DATABASE_URL
	@deploy/local/install test
	@cargo run -q -p assay-testkit --bin with-servers -- "$${SHELL:-bash}"

bench: ## measure Assay against a monolith; takes an hour or two. A part: BENCH='--rows read --seconds 3'
	@deploy/local/install
	@cargo build --profile dist --locked --bins $(MEASURED)
	@$(TARGET)/dist/assay-bench $(BENCH)

profile: ## draw a flame graph of a row of `make bench`: ROW=read SHAPE=one
	@deploy/local/install profile
	@RUSTFLAGS='-C force-frame-pointers=yes' cargo build --profile profiling --locked --bins $(MEASURED)
	@$(TARGET)/profiling/assay-bench --no-baseline --rounds 1 --rows $(ROW) --shapes $(SHAPE) \
		--perf $(TARGET)/profile.perf
	@perf script --input $(TARGET)/profile.perf | inferno-collapse-perf --all | \
		inferno-flamegraph --title '$(ROW), $(SHAPE)' >$(TARGET)/profile-$(ROW)-$(SHAPE).svg
	@echo $(TARGET)/profile-$(ROW)-$(SHAPE).svg

fairness: ## measure how much one customer slows down another; takes minutes
	@deploy/local/install
	@cargo build --release --locked -p assay --bin assay
	@deploy/local/fairness

overload: ## measure what is served while 3,000 clients send requests; takes minutes
	@deploy/local/install
	@cargo build --release --locked -p assay -p assay-testkit --bin assay --bin flood
	@deploy/local/overload

deletion: ## measure the effect of deleting a project with a million test cases; takes minutes
	@deploy/local/install
	@cargo build --release --locked -p assay --bin assay
	@deploy/local/deletion

moving: ## measure exports and imports of a project with a million results; takes an hour
	@deploy/local/install
	@cargo build --release --locked -p assay --bin assay
	@deploy/local/moving

judgement: ## judge generated histories whose truth is known, and print how often the rule is right
	@cargo run -q --release --locked -p assay-judge --example truth

reporting: ## measure how many requests of ReportPortal's agents are held; takes a minute
	@deploy/local/install
	@cargo build --release --locked -p assay --bin assay
	@deploy/local/reporting

clean: ## remove build artefacts, but not the data
	@cargo clean

.PHONY: help run test check language chart supply-chain conformance large-files chaos receivers test-agents test-tools test-compose servers bench \
	profile fairness overload deletion moving reporting judgement clean
