# Shortcuts; the work is done by the npm scripts in package.json.
.DEFAULT_GOAL := help
.PHONY: help start test prove types lint fix docs build clean

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

start: ## Run the showcase
	@npm start --silent

test: ## Run every check; one step alone with ONLY=<step>
	@npm test --silent -- $(if $(ONLY),--only $(ONLY))

prove: ## Repeat the tests at length, on further servers and on Node 24
	@npm run --silent prove

types: ## Check the types
	@npm run --silent types

lint: ## Check format and lint rules
	@npm run --silent lint

fix: build ## Repair format and lint where that is safe
	@npm run --silent lint:fix

docs: ## Write the generated documents anew
	@npm run --silent docs:generate

build: ## Install dependencies and compile, where out of date
	@npm run --silent build

clean: ## Remove everything that was built or installed
	@rm -rf dist .build .cache node_modules
