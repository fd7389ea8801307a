# Holdfast. `make` alone lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

BIN := .bin

.PHONY: help dev demo build temporal temporal-cli fmt lint unit e2e screenshots chaos corpus test test-long needs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "Variables of dev: RESET=1, TWILIO=stub, HOLD_SECONDS, OFFER_SECONDS, DOOR_PORT, TEMPORAL_PORT, UI_PORT,"
	@echo "REDIS_PORT; TEMPORAL_ADDRESS and REDIS_ADDRESS use servers that run already."

# A binary and exec, not `go run`: whatever ends this process, be it kill -9,
# ends the supervisor, and with it the children.
dev: ## run everything on this machine: Redis, Temporal with its UI, worker, door
	@go build -o $(BIN)/dev ./dev
	@exec $(BIN)/dev

demo: ## play two stories against a running `make dev`
	@go run ./dev/demo

build: ## build the product: .bin/holdfast
	go build -o $(BIN)/holdfast .

# Without the tables for debuggers the binary links faster.
temporal: ## build the embedded Temporal server: .bin/temporal (the first time takes minutes)
	@test -e $(BIN)/temporal || echo "building the embedded Temporal server, more than a thousand packages: the first time takes some minutes of all cores"
	go build -C dev/temporal -ldflags='-s -w' -o ../../$(BIN)/temporal .

temporal-cli: ## build Temporal's own CLI, a stranger's client: .bin/temporal-cli (the first time takes minutes)
	@test -e $(BIN)/temporal-cli || echo "building the Temporal CLI: the first time takes some minutes of all cores"
	go build -C dev/temporalcli -ldflags='-s -w' -o ../../$(BIN)/temporal-cli github.com/temporalio/cli/cmd/temporal

fmt: ## format all Go code
	go tool gofumpt -w .

lint: ## formatting, vet, staticcheck, determinism of the workflows
	@files=$$(go tool gofumpt -l .); test -z "$$files" || { echo "not formatted, run make fmt:"; echo "$$files"; exit 1; }
	go vet ./...
	go vet -C dev/temporal ./...
	go tool staticcheck ./...
	go tool workflowcheck ./workflows/...

# The gate's long form plays hundreds of concurrent histories.
UNIT_TIMEOUT := $(if $(HOLDFAST_LONG),3h,15m)

unit: needs ## unit tests, gate on a real Redis, workflow suites; with the race detector
	go test -race -timeout $(UNIT_TIMEOUT) $$(go list ./... | grep -v '/e2e$$')
	go test -C dev/temporal ./...

STORIES := HOLDFAST_BIN=$(CURDIR)/$(BIN)/holdfast TEMPORAL_BIN=$(CURDIR)/$(BIN)/temporal \
	TEMPORAL_CLI_BIN=$(CURDIR)/$(BIN)/temporal-cli go test -count=1 -timeout 45m

e2e: needs build temporal temporal-cli ## stories on real Temporal and Redis with the built binaries
	$(STORIES) ./e2e

screenshots: needs build temporal ## make the pictures of the pages and of the Temporal UI in docs/images anew
	SCREENSHOTS=$(CURDIR)/docs/images go test -count=1 -run '^TestEveryPageInABrowser$$' ./starter
	SCREENSHOTS=$(CURDIR)/docs/images $(STORIES) -run '^TestAnOperatorReadsTheUI$$' ./e2e

RUNS ?= 1

chaos: needs build temporal ## a sale while everything is killed, stopped, cut off and slowed at random; RUNS=n, CHAOS_SEED=n
	HOLDFAST_LONG=1 $(STORIES) -v -run '^TestChaos$$' -count=$(RUNS) -timeout 12h ./e2e

# docs/deploy.md says when.
corpus: needs build temporal ## play every path on real servers and keep the histories for the replay tests
	$(STORIES) -run '^TestHistories$$' ./e2e -corpus
	go test -count=1 -run '^TestEveryKeptHistoryReplays$$' ./workflows

test: ## everything that must pass: lint, unit, e2e
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory e2e

test-long: ## test, with the large forms of the stories
	@HOLDFAST_LONG=1 $(MAKE) --no-print-directory test

# Redis for the gate's tests, a C compiler for the race detector, promtool for the
# alert rules, a browser for the pages and for Temporal's UI; Node brings axe-core,
# which reads the pages, and in the long form Twilio's calculator of segments.
needs:
	@missing=""; \
	command -v npm >/dev/null || missing="$$missing nodejs npm"; \
	command -v redis-server >/dev/null || missing="$$missing redis-server"; \
	command -v promtool >/dev/null || missing="$$missing prometheus"; \
	command -v "$$(go env CC)" >/dev/null || missing="$$missing gcc libc6-dev"; \
	command -v chromium >/dev/null || missing="$$missing chromium"; \
	test -n "$$missing" || exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq; \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing; \
	else \
		echo "missing:$$missing. On Debian: apt-get install$$missing" >&2; exit 1; \
	fi

clean: ## remove built binaries; the state of `make dev` stays (make dev RESET=1)
	rm -rf $(BIN)
