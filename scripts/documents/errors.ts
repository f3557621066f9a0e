/** `docs/reference/errors.md`: every error by its code, from the comments of its class. */
import { readFileSync } from 'node:fs'

const CLASS =
  /\/\*\* ([^*]+) \*\/\nexport class (\w+) extends PawlError \{\n {2}readonly code = '(\w+)'/g

const FOLDERS = ['core', 'stores', 'engine', 'runs/journal', 'runs', 'http', 'testing', 'cli']
const SOURCES = FOLDERS.map((folder) => `src/${folder}/errors.ts`)

/** The whole document. */
export function errorsDocument(): string {
  const source = SOURCES.map((path) => readFileSync(path, 'utf8')).join('\n')
  const rows = [...source.matchAll(CLASS)].map(
    ([, what, name, code]) => `| \`${code}\` | \`${name}\` | ${what} |`,
  )
  return [
    '# Errors',
    '',
    'Generated from `errors.ts` in `src/core`, `src/stores`, `src/runs`, `src/engine`,',
    '`src/http`, `src/testing` and `src/cli`. Every error has a class, a stable code, a message',
    'that says what happened, a `hint` that says what to do, and `details` for programs.',
    '',
    '| code | class | when |',
    '|---|---|---|',
    ...rows.sort(),
    '',
  ].join('\n')
}
