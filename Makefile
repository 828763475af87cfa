# Every target is one npm script; `npm start` and `npm test` do the same without make.
# Arguments go through ARGS: make run ARGS="--port 8080"

.DEFAULT_GOAL := help
.PHONY: help run check test bench bench-webhooks bench-media bench-analytics test-media mutants trips chaos fuzz contracts sdk admin audit doctor types lint clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## install what is missing, start everything on this machine and take the tour
	@npm start --silent -- $(ARGS)

check: ## types, lint, the rules of the house, schemas and domain, within a minute: for each save
	@npm run check --silent

test: ## types, lint and every test, ending with "N passed, N failed"
	@npm test --silent -- $(ARGS)

bench: ## measure, beside the bare clients and the peers; QUICK=1 for a short form
	@npm run bench --silent -- $(ARGS)

bench-webhooks: ## measure webhooks from the event to the receiver; ARGS="one paced" for parts
	@npm run bench-webhooks --silent -- $(ARGS)

bench-media: ## measure renditions, uploads and memory beside bare ffmpeg and a bare stream
	@npm run bench-media --silent -- $(ARGS)

bench-analytics: ## measure reads of 100,000,000 observations and their way into the store
	@npm run bench-analytics --silent -- $(ARGS)

test-media: ## make renditions of many real sources for every network and check each; ARGS="--help"
	@npm run test-media --silent -- $(ARGS)

mutants: ## change the deciders in one place at a time: their own tests must notice; ARGS="--help"
	@npm run mutants --silent -- $(ARGS)

trips: ## count the functions and files of ours that run for one call; ARGS="--files POST" lists them
	@npm run trips --silent -- $(ARGS)

chaos: ## kill processes at random at least 200 times and compare what is left
	@npm run chaos --silent -- $(ARGS)

fuzz: ## call every operation at least 100,000 times with generated input: only answers of the contract come back
	@npm run fuzz --silent -- $(ARGS)

sdk: ## make a client of the contract with each generator and run a tour through it; ARGS="--help"
	@npm run sdk --silent -- $(ARGS)

contracts: ## write openapi.json, asyncapi.json and access.md of contracts/, and services/api/operations.ts
	@npm run contracts --silent -- $(ARGS)

admin: ## workspaces, members, keys, sessions, secrets: ARGS="--help"
	@npm run admin --silent -- $(ARGS)

audit: ## export and verify what happened, and see who read it: ARGS="--help"
	@npm run audit --silent -- $(ARGS)

doctor: ## what each network says of this installation, and what to fix: ARGS="networks"
	@npm run doctor --silent -- $(ARGS)

types: ## check the types
	@npm run types --silent

lint: ## check format and lint rules
	@npm run lint --silent

clean: ## remove installed dependencies; your data stays
	@npm run clean --silent
