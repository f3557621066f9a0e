/**
 * Writes the documents that come from the code, or with --check says which of them are out of date.
 * Diagrams and tables of machines are never drawn by hand, so they cannot drift from the rules.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { apiDocuments } from './documents/api.ts'
import { cliDocument } from './documents/cli.ts'
import { errorsDocument } from './documents/errors.ts'
import { runEventsDocument, runStateGraphDocument } from './documents/runs.ts'
import { stateMachinesDocument } from './documents/state-machines.ts'

const documents: Record<string, string> = {
  ...apiDocuments(),
  'docs/internals/state-machines.md': stateMachinesDocument(),
  'docs/reference/cli.md': cliDocument(),
  'docs/reference/errors.md': errorsDocument(),
  'docs/reference/run-events.md': runEventsDocument(),
  'docs/reference/run-state-graph.md': runStateGraphDocument(),
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
