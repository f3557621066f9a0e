/** `docs/reference/errors.md`: every error by its code, from the comments of its class. */
import { readFileSync } from 'node:fs'

const COMMENT = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n/
const DECLARED = /export class (\w+) extends (?:PawlError|Terminal) \{\n {2}readonly code = '(\w+)'/
/** A comment of one or more lines, and the class under it. */
const CLASS = new RegExp(COMMENT.source + DECLARED.source, 'g')

const FOLDERS = ['core', 'stores', 'engine', 'runs/journal', 'runs', 'http', 'testing', 'cli']
const SOURCES = FOLDERS.map((folder) => `src/${folder}/errors.ts`)

/** The whole document. */
export function errorsDocument(): string {
  const source = SOURCES.map((path) => readFileSync(path, 'utf8')).join('\n')
  const rows = [...source.matchAll(CLASS)].map(
    ([, what = '', name, code]) => `| \`${code}\` | \`${name}\` | ${oneLine(what)} |`,
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

function oneLine(comment: string): string {
  return comment.replaceAll(/\n \*/g, ' ').replaceAll(/\s+/g, ' ').trim()
}
