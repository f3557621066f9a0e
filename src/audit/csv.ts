/**
 * Facts as CSV for spreadsheets (RFC 4180: lines end with CR LF, a quote is doubled). Names,
 * reasons and errors can contain any text, and a spreadsheet evaluates a cell that looks like a
 * formula. Such a cell gets an apostrophe as a prefix, so that spreadsheets show it as text.
 */
import type { Fact } from '../core/job/facts.ts'
import { stamp } from '../environment/times.ts'
import type { AuditEntry } from '../stores/audit.ts'

/** The columns, in order. */
const COLUMNS: readonly (readonly [head: string, value: (fact: Fact) => unknown])[] = [
  ['job', ({ jobId }) => jobId],
  ['seq', ({ seq }) => seq],
  ['at', ({ at }) => stamp(at)],
  ['trigger', ({ trigger }) => trigger],
  ['from', ({ from }) => from],
  ['via', ({ via }) => via?.join(' > ')],
  ['to', ({ to }) => to],
  ['actor', ({ actor }) => actor],
  ['operator', ({ operator }) => operator],
  ['reason', ({ reason }) => reason],
  ['note', ({ note }) => note],
  ['attempt', ({ execution }) => execution?.attempt],
  ['statuses', ({ execution }) => execution?.statuses.join(' ')],
  ['worker', ({ execution }) => execution?.worker],
  ['abort', ({ execution }) => execution?.abort],
  ['queue_ms', ({ timing }) => timing?.queueMs],
  ['duration_ms', ({ timing }) => timing?.durationMs],
  ['outcome', ({ outcome }) => outcome],
  ['error', ({ error }) => error?.message],
  ['trace_id', ({ traceId }) => traceId],
  ['span_id', ({ spanId }) => spanId],
]

/**
 * The first characters of formulas, also in full width and after characters that spreadsheets
 * strip.
 */
const FORMULA = /^[\s'"]*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]/u

/** Returns the first line: the names of the columns. */
export function csvHead(payloads: boolean): string {
  return lineOf(['pos', ...COLUMNS.map(([head]) => head), ...(payloads ? ['payload'] : [])])
}

/** Returns the line of one fact. `clean` escapes texts for terminals and viewers. */
export function csvLine({ pos, fact, payload }: AuditEntry, clean: (text: string) => string) {
  const cells = COLUMNS.map(([, value]) => value(fact))
  const all = [pos, ...cells, ...(payload === undefined ? [] : [payload])]
  return lineOf(all.map((cell) => safe(clean(String(cell ?? '')))))
}

function safe(cell: string): string {
  return FORMULA.test(cell) ? `'${cell}` : cell
}

function lineOf(cells: readonly string[]): string {
  const quoted = cells.map((cell) =>
    /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell,
  )
  return `${quoted.join(',')}\r\n`
}
