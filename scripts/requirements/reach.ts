// What a test stands on: pure rules, or something real.
import { dirname, join } from 'node:path'

/** What a test file reaches by its imports. */
export interface Reach {
  /** Its tests call pure functions alone. */
  readonly pure: boolean
  readonly sqlite: boolean
  readonly postgres: boolean
}

/** Folders whose tests call pure functions alone: no store, process, file or time is in them. */
const PURE = [
  'src/core/',
  'test/conformance/rules/',
  'test/core/',
  'test/invariants/',
  'test/machine/',
  'test/transitions/',
]
/** Every store passes these, on SQLite and on PostgreSQL. */
const CONTRACT = 'test/contract/store/'
const POSTGRES = 'test/support/postgres/'
const IMPORT = /(?:from|import|new URL\()\s*\(?'((?:\.{1,2}\/)?[^']+\.(?:ts|mjs))'/g

/** Finds out what a test file reaches; `read` gives the text of a file, if there is one. */
export function reachOf(path: string, read: (path: string) => string | undefined): Reach {
  if (path.startsWith(CONTRACT)) return { pure: false, sqlite: true, postgres: true }
  if (PURE.some((folder) => path.startsWith(folder))) {
    return { pure: true, sqlite: false, postgres: false }
  }
  const seen = new Map<string, string>()
  const queue = [path]
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const text = seen.has(next) ? undefined : read(next)
    if (text === undefined) continue
    seen.set(next, text)
    // Below src everything reaches everything; how tests use it shows in the tests themselves.
    if (!next.startsWith('test/') || next.startsWith(CONTRACT)) continue
    for (const [, target = ''] of text.matchAll(IMPORT)) queue.push(join(dirname(next), target))
  }
  // Tests take helpers from the contract suite, whose text names every store.
  const isOwn = (file: string) => file.startsWith('test/') && !file.startsWith(CONTRACT)
  const texts = [...seen].filter(([file]) => isOwn(file))
  return {
    pure: false,
    sqlite: texts.some(([, text]) => /sqlite|\.db\b|createTestPawl|:memory:/i.test(text)),
    postgres: texts.some(([file]) => file.startsWith(POSTGRES)),
  }
}
