// `npm start`: the showcase, in a fresh clone as well. Arguments are passed on to it.
import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { prepareOrExit } from './prepare.mjs'

await prepareOrExit()

// A run first, in a few lines; with --json all of that is talk.
const run = [resolve('.build/programs/examples/docs-pipeline/main.js')]
const isJson = process.argv.includes('--json')
const { status } = spawnSync(process.execPath, run, {
  stdio: ['ignore', isJson ? 2 : 'inherit', 'inherit'],
})
if (status !== 0) process.exit(status ?? 1)

// The showcase takes over this process, so that signals, terminal and exit code are its own.
const showcase = resolve('.build/programs/examples/03-crashes/main.js')
process.argv[1] = showcase
await import(pathToFileURL(showcase).href)
