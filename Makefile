# One command a task; `make` alone prints them.

GO ?= go
BIN := bin/kanlog
export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help
.PHONY: help build test race demo crash lint fmt bench fuzz man

help: ## print the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

# Copied, since the linker writes through a mapping: what it wrote lies in memory in
# single pages, and a start that maps them one by one takes a tenth longer. Moved into
# place, since a supervisor may be running the old one.
build: ## build bin/kanlog, and bin/kanlog-scenario for its verb scenario
	$(GO) build -trimpath -o $(BIN).linked ./cmd/kanlog
	cp $(BIN).linked $(BIN).copy
	mv $(BIN).copy $(BIN)
	$(GO) build -trimpath -o $(BIN)-scenario ./cmd/kanlog-scenario

test: ## run every test, scenarios included
	$(GO) test -timeout 15m ./...

race: ## run every test under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race ./...

demo: build ## five cards, real workers, a dispatcher killed in the middle (under 30 s)
	sh scripts/demo $(abspath $(BIN))

crash: build ## real processes killed and stopped at random, 30 rounds
	sh scripts/crash 30 0 $(abspath $(BIN))

lint: ## gofmt, go vet, staticcheck; it compiles for macOS and 32 bits
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "gofmt would change:"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	GOOS=darwin $(GO) vet ./...
	GOARCH=386 $(GO) build ./proc ./cmd/internal/prefault

# A test makes them, so that what it takes (a renderer of Markdown) is no part of
# the program: its tables alone would double what a short call does at the start.
man: ## write the manual pages into bin/man
	$(GO) test ./cmd/kanlog -count 1 -run '^TestManPages$$' -man $(abspath bin/man)

fmt: ## format every Go file
	gofmt -w .

bench: build ## print what things cost, as ratios and medians of one run
	sh scripts/cost $(abspath $(BIN))

# The three whose faults cost most: a store, the settings, what a worker left. Any
# other: go test ./proc -run XXX -fuzz '^FuzzSaid$$' -fuzztime 1m
FUZZTIME ?= 5s
fuzz: ## look for new inputs, FUZZTIME (5s) for each of three targets
	$(GO) test ./projection -run XXX -fuzz '^FuzzDamage$$' -fuzztime $(FUZZTIME) -fuzzminimizetime 10x
	$(GO) test ./cmd/kanlog -run XXX -fuzz '^FuzzSettings$$' -fuzztime $(FUZZTIME) -fuzzminimizetime 10x
	$(GO) test ./eventlog -run XXX -fuzz '^FuzzDecodeBody$$' -fuzztime $(FUZZTIME) -fuzzminimizetime 10x
