/**
 * The record of a failure beside a damaged log, version 1: `events.failed-<n>.ndjson`.
 *
 * The first line is an object in canonical JSON:
 *
 *   format   "pawl-run-failure"
 *   version  1
 *   sha256   of all bytes of the damaged log; of no bytes if the log is missing
 *   line, offset, why   the damage
 *
 * The lines after it are events in the format of the log (`event-line.ts`). They follow the last
 * line before the damage, by seq and by hash. So the sound part of the log and these lines together
 * are a valid log, which ends with the failure of the run. If no line of the log can be read, they
 * begin with RUN_CREATED.
 *
 * A record is valid only while the log has the hash in it. After the log was restored, the record
 * is ignored.
 */
import { encode } from '../../core/canonical-json.ts'
import type { Damage } from './journal.ts'

export interface FailureRecord {
  readonly sha256: string
  readonly damage: Damage
  /** Without line feeds. */
  readonly lines: readonly string[]
}

const FORMAT = 'pawl-run-failure'

export function encodeFailure({ sha256, damage, lines }: FailureRecord): string {
  const { line, offset, why } = damage
  const header = encode({ format: FORMAT, version: 1, sha256, line, offset, why })
  return [header, ...lines, ''].join('\n')
}

/** Parses the text of a record. Returns `undefined` if it is invalid. */
export function decodeFailure(text: string): FailureRecord | undefined {
  const [first = '', ...lines] = text.split('\n')
  if (lines.pop() !== '' || lines.length === 0) return undefined
  let header: Partial<Record<string, unknown>> | null
  try {
    header = JSON.parse(first)
  } catch {
    return undefined
  }
  const { format, version, sha256, line, offset, why } = header ?? {}
  if (format !== FORMAT || version !== 1 || typeof sha256 !== 'string') return undefined
  if (typeof line !== 'number' || typeof offset !== 'number' || typeof why !== 'string') {
    return undefined
  }
  return { sha256, damage: { line, offset, why }, lines }
}
