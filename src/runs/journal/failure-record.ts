/**
 * What is recorded beside a damaged log, version 1: `events.failed-<n>.ndjson`.
 *
 * The first line is an object in canonical JSON:
 *
 *   format   "pawl-run-failure"
 *   version  1
 *   sha256   of all bytes of the damaged log; of no bytes where the log is missing
 *   line, offset, why   what is wrong with it, and where
 *
 * The lines after it are events in the form of the log (`event-line.ts`). They follow the last line
 * before the damage, by seq and by hash, so that the good part of the log and these lines together
 * are a log that can be read, and which ends in the failure of the run. Where nothing of the log
 * can be read, they begin with a RUN_CREATED of their own.
 *
 * A record counts only while the log still has the hash that it names: a log that was restored is
 * read as if there were no record.
 */
import { encode } from '../../core/canonical-json.ts'
import type { Damage } from './journal.ts'

/** A record, as it was read. */
export interface FailureRecord {
  readonly sha256: string
  readonly damage: Damage
  /** Without line feeds. */
  readonly lines: readonly string[]
}

const FORMAT = 'pawl-run-failure'

/** The text of a record. */
export function encodeFailure({ sha256, damage, lines }: FailureRecord): string {
  const { line, offset, why } = damage
  const header = encode({ format: FORMAT, version: 1, sha256, line, offset, why })
  return [header, ...lines, ''].join('\n')
}

/** Reads the text of a record; nothing where it is not one. */
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
