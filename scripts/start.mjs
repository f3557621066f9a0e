// `npm start`: the showcase, in a fresh clone as well. Arguments are passed on to it.
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { prepareOrExit } from './prepare.mjs'

await prepareOrExit()

// The showcase takes over this process, so that signals, terminal and exit code are its own.
const showcase = resolve('.build/programs/examples/03-crashes/main.js')
process.argv[1] = showcase
await import(pathToFileURL(showcase).href)
