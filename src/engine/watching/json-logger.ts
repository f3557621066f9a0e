/**
 * Writes log lines as NDJSON, with the keys of pino: `time`, `level` and `msg`, then the fields of
 * the line. One event is one line, whatever names and messages contain: line breaks, control
 * characters and characters that change the direction of text are written as escapes.
 */
import { oneOf } from '../../core/checks.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import type { Logger, LogLevel } from '../../core/ports.ts'

/** The options of `jsonLogger`. */
export interface JsonLoggerOptions {
  /**
   * Lines below this level are not written.
   * @defaultValue `'info'`
   */
  readonly level?: LogLevel
  /**
   * Writes one line, which ends with a line feed.
   * @defaultValue to stderr
   */
  readonly write?: (line: string) => unknown
  /**
   * Returns the time of a line.
   * @defaultValue that of the machine
   */
  readonly now?: () => Date
}

/** The levels, by their numbers in pino. */
const LEVELS = { debug: 20, info: 30, warn: 40, error: 50 } as const satisfies Record<
  LogLevel,
  number
>

const OPTIONS: FieldChecks<JsonLoggerOptions> = {
  level: (value) => oneOf(value, Object.keys(LEVELS)),
  write: unchecked,
  now: unchecked,
}

/** Longer lines are cut to their first fields: a logger must not fill a disk. */
const LINE_MAX = 64 * 1024

/** Characters that JSON leaves as they are, and that terminals or readers of lines act upon. */
const ACTING = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g

/** Returns a logger that writes one line of JSON for each event. */
export function jsonLogger(options: JsonLoggerOptions = {}): Logger {
  checkFields(options, OPTIONS, { what: 'options' })
  const { level: least = 'info', write = toStderr, now = () => new Date() } = options
  const at = (level: LogLevel): Logger['info'] => {
    if (LEVELS[level] < LEVELS[least]) return () => {}
    return (fields, msg) => {
      const head = { time: now().toISOString(), level, msg }
      write(`${lineOf(head, fields)}\n`)
    }
  }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

type Head = Readonly<Record<'time' | 'level' | 'msg', string>>

/** What the line itself says comes last, so that no field can replace it. */
function lineOf(head: Head, fields: Readonly<Record<string, unknown>>): string {
  const line = textOf({ ...head, ...fields, ...head })
  if (line.length <= LINE_MAX) return line
  const { event } = fields
  const msg = head.msg.slice(0, LINE_MAX / 8)
  return textOf({ ...head, msg, event, truncated: line.length })
}

function textOf(line: object): string {
  return encoded(line).replace(ACTING, escaped)
}

/** Values that JSON does not have: a `bigint` as text, a circular value as a word. */
function encoded(line: object): string {
  const above: object[] = []
  return JSON.stringify(line, function (this: object, _key, value: unknown) {
    while (above.length > 0 && above.at(-1) !== this) above.pop()
    if (typeof value === 'bigint') return String(value)
    if (typeof value !== 'object' || value === null) return value
    if (above.includes(value)) return '[circular]'
    above.push(value)
    return value
  })
}

function escaped(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
}

function toStderr(line: string): void {
  process.stderr.write(line)
}
