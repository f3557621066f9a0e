/**
 * Writes the documents that come from the code, or with --check says which of them are out of date.
 * Diagrams and tables of machines are never drawn by hand, so they cannot drift from the rules.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { apiDocuments } from './documents/api.ts'
import { readApi } from './documents/api-model.ts'
import { cliDocument } from './documents/cli.ts'
import { dashboardTypes } from './documents/dashboard-types.ts'
import { embeddedModules } from './documents/embedded.ts'
import { errorsDocument } from './documents/errors.ts'
import { openApiDocument } from './documents/openapi.ts'
import { optionsDocument } from './documents/options.ts'
import { runEventsDocument, runStateGraphDocument } from './documents/runs.ts'
import { stateMachinesDocument } from './documents/state-machines.ts'

const api = readApi()
const documents: Record<string, string> = {
  ...apiDocuments(api),
  ...embeddedModules(),
  'docs/internals/state-machines.md': stateMachinesDocument(),
  'docs/reference/cli.md': cliDocument(),
  'docs/reference/errors.md': errorsDocument(),
  'docs/reference/options.md': optionsDocument(api),
  'docs/reference/run-events.md': runEventsDocument(),
  'docs/reference/run-state-graph.md': runStateGraphDocument(),
  'dashboard/api/operations.ts': dashboardTypes(),
  'specs/openapi.json': openApiDocument(),
}

const check = process.argv.includes('--check')
const stale = Object.entries(documents).filter(
  ([path, text]) => !existsSync(path) || readFileSync(path, 'utf8') !== text,
)
for (const [path, text] of stale) {
  if (check) console.error(`${path} is out of date: run npm run docs:generate`)
  if (check) continue
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}
if (check && stale.length > 0) process.exitCode = 1
