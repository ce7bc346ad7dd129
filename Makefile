# One command a task; `make` alone prints them.

GO ?= go
BIN := bin/kanlog
export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help
.PHONY: help build test race demo crash lint fmt bench fuzz man

help: ## print the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

# Written once more, in one piece: what the linker writes through a mapping lies in
# memory in single pages, what comes in megabytes lies there in huge ones, which a
# process maps in one step; a start takes a fifth less, until the kernel forgets the file
# and reads it again. Linux maps a huge page only where addresses and offsets in the file
# are multiples of 2 MiB, so the linker is told to begin each part of the program there.
# Moved into place, since a supervisor may be running the old one.
ifeq ($(shell $(GO) env GOOS),linux)
LINK := -ldflags='-R 0x200000'
IN_ONE_PIECE = dd if=$(1) of=$(2) bs=32M status=none
else
IN_ONE_PIECE = :
endif
build: ## build bin/kanlog, and bin/kanlog-scenario for its verb scenario
	$(GO) build -trimpath $(LINK) -o $(BIN).linked ./cmd/kanlog
	cp $(BIN).linked $(BIN).copy
	$(call IN_ONE_PIECE,$(BIN).linked,$(BIN).copy)
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
