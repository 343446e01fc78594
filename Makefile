# Two commands do everything on a fresh machine: `make run` and `make test`.
.PHONY: release release-check run test cuda-test cuda-check gpu clients postgres milvus browser peers bench bench-texts bench-peers lint build clean help vulncheck cross gorgonia-cuda

GO    ?= go
CACHE ?= $(if $(SLUICE_CACHE),$(SLUICE_CACHE),$(HOME)/.cache/sluice)
CLIENTS := $(CACHE)/clients
PYTHON_CLIENT := $(CACHE)/python-client
MILVUS := $(CACHE)/milvus
BROWSER := $(CACHE)/browser
# A folder of texts, to make passages and vectors of: the public data of the tests (docs/evaluation.md), unless another is named.
SLUICE_DATA ?= ../shared/data
TEXTS ?= $(SLUICE_DATA)
MODEL := all-minilm-l6-v2
COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)

help: ## What there is to make
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

run: build ## Build, fetch the model, start the demo on 127.0.0.1:8080 and keep serving
	@bin/sluice model pull $(MODEL) >/dev/null
	@exec bin/sluice demo --data ./data

build: ## bin/sluice
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-X main.commit=$(COMMIT)" -o bin/sluice ./cmd/sluice

clients: $(CLIENTS)/installed $(PYTHON_CLIENT)/installed ## Published Python clients of the APIs, and what tests our own

$(CLIENTS)/installed: server/testdata/clients/requirements.txt
	python3 -m venv $(CLIENTS)
	$(CLIENTS)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

$(PYTHON_CLIENT)/installed: clients/python/requirements.txt
	python3 -m venv $(PYTHON_CLIENT)
	$(PYTHON_CLIENT)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

postgres: ## PostgreSQL's programs, for the tests of store/postgres
	@store/postgres/install.sh

milvus: $(MILVUS)/installed ## A Milvus server, for the tests of index/milvus

$(MILVUS)/installed: index/milvus/milvustest/requirements.txt
	python3 -m venv $(MILVUS)
	$(MILVUS)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

browser: $(BROWSER)/installed ## A headless Chromium and axe, for the tests of pages (needs npm)

$(BROWSER)/installed: $(addprefix server/console/browsertest/,install.sh package-lock.json fonts.conf)
	@server/console/browsertest/install.sh $(BROWSER)

test: build ## Every test, unit and integration, then the race detector (many minutes)
	bin/sluice model pull $(MODEL) >/dev/null
	@$(MAKE) --no-print-directory clients || echo "without Python the clients are not tested" >&2
	@$(MAKE) --no-print-directory postgres || echo "without PostgreSQL store/postgres is not tested" >&2
	@$(MAKE) --no-print-directory milvus || echo "without Python the index on Milvus is not tested" >&2
	@$(MAKE) --no-print-directory browser || echo "without npm the console is not tested in a browser" >&2
	$(GO) test -timeout 20m ./...
	$(GO) test -race -short -timeout 20m $(RACED)
	@$(MAKE) --no-print-directory cuda-test

cuda-test: ## The CUDA path on an emulated device (needs g++ and Python, no GPU)
	@kernels/cuda/test.sh

gpu: ## bin/sluice-gpu, the worker for NVIDIA GPUs (needs a C compiler and Python; no GPU, no CUDA)
	@$(MAKE) --silent -C kernels/cuda trampoline include
	. kernels/cuda/environment.sh && $(GO) build -trimpath -tags nvidia -ldflags "-s -w -X main.commit=$(COMMIT)" -o bin/sluice-gpu ./cmd/sluice-gpu

cuda-check: gpu ## bin/cuda-check, a folder to copy to a machine with a GPU: its check.sh tests and measures there
	@kernels/cuda/check/build.sh bin/cuda-check

# What has concurrency worth racing; the engine's arithmetic is too slow under -race, and index/milvus waits for its server a second time.
RACED = ./filter/... ./store/... ./index ./index/late ./index/local/... ./index/text ./ingest/... ./retrieve/... ./server/... ./client/... ./gpu/cuda

peers: .peers/ready .peers/serve/ready ## Install what `sluice bench … --peers` compares with, in .peers (6 GB with torch)

# Where 'make bench' leaves its runs and their page.
RUNS ?= bench-runs/$(COMMIT)

bench: build ## Everything that is measured without peers, in minutes; the runs and report.html stay in $(RUNS)
	@mkdir -p $(RUNS)
	bin/sluice bench serve --null --turn 1s --json $(RUNS)/null.json
	bin/sluice bench filter --json $(RUNS)/filter.json
	bin/sluice bench embed --rounds 5 --turn 150ms --json $(RUNS)/embed.json
	bin/sluice bench rerank --rounds 3 --json $(RUNS)/rerank.json
	bin/sluice bench serve --self --ramp --rounds 3 --turn 1s --json $(RUNS)/serve.json
	@test -d $(TEXTS) || echo "no ingestion, BM25 and hybrid search: TEXTS=FOLDER names texts to make passages of" >&2
	@test ! -d $(TEXTS) || $(MAKE) --no-print-directory bench-texts RUNS=$(RUNS)
	bin/sluice bench report $(RUNS) --out $(RUNS)/report.html

bench-texts: build
	bin/sluice bench ingest $(TEXTS) --json $(RUNS)/ingest.json
	bin/sluice bench lexical $(TEXTS) --passages 20000 --rounds 4 --json $(RUNS)/lexical.json
	bin/sluice bench search $(TEXTS) --rows 20000 --rounds 4 --json $(RUNS)/search.json
	bin/sluice bench hybrid $(TEXTS) --passages 2000 --rounds 4 --turn 2s --json $(RUNS)/hybrid.json

bench-peers: build peers ## Ours beside ONNX Runtime, OpenVINO, infinity, tantivy, hnswlib, faiss, usearch, in turns
	bin/sluice bench embed --peers
	bin/sluice bench rerank --peers
	bin/sluice bench serve --self --peers
	bin/sluice bench lexical $(TEXTS) --peers
	bin/sluice bench search $(TEXTS) --peers

.peers/ready: bench/peers/requirements.txt
	python3 -m venv .peers
	.peers/bin/pip install --quiet -r $<
	touch $@

.peers/serve/ready: bench/peers/serve-requirements.txt
	python3 -m venv .peers/serve
	.peers/serve/bin/pip install --quiet -r $<
	touch $@

release: ## dist/: static archives for linux amd64 and arm64, SBOMs, licences, checksums
	@release/build.sh

release-check: ## Two releases of the last commit from empty caches, byte for byte the same (many minutes)
	@release/check.sh

lint: ## gofmt, vet, staticcheck
	@test -z "$$(gofmt -l . | tee /dev/stderr)" || { echo "run gofmt -w on the files above" >&2; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

cross: ## The plain path builds where there are no assembly kernels
	GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./...
	GOARCH=arm64 CGO_ENABLED=0 $(GO) build ./...

vulncheck: ## Known vulnerabilities (needs the vulnerability database)
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.1.4 ./...

# Needs cgo, CUDA up to 12.9 and cuDNN 8 with their headers (gorgonia.org/cu does not compile on CUDA 13), and, already to start, a
# driver with a device: without one cu ends the process. No part of CI, and not measured: it is here for whoever wants to try
# Gorgonia's kernels. Two tests are of the machine that this build does without.
gorgonia-cuda: ## bin/sluice-gorgonia-cuda, whose device gorgonia runs on an NVIDIA GPU
	CGO_ENABLED=1 $(GO) test -tags cuda -skip 'Panics|Contexts' ./gpu/graph
	CGO_ENABLED=1 $(GO) build -trimpath -tags cuda -ldflags "-X main.commit=$(COMMIT)" -o bin/sluice-gorgonia-cuda ./cmd/sluice

clean: ## Remove what was built here
	rm -rf bin dist
