/**
 * How names become paths. Names come from anybody, and a path must never lead out of the run's
 * folder, nor mean two things on a file system that ignores case.
 *
 * A run id is the name of its folder as it is: lower-case letters, digits, '.', '_' and '-', at
 * most 100 of them, with a letter or a digit at both ends. Names that Windows keeps for devices
 * (con, nul, com1 …, also before a dot) are refused.
 *
 * An artifact may have any name that the core allows. Its file is
 *
 *   artifacts/<name>.<sha256>
 *
 * where the name is written in lower-case letters, digits, '_', '-' and '.', and every other byte
 * of its UTF-8 as %hh, as are a dot at its beginning and the first letter of a device name. A name
 * longer than 140 characters in this writing is cut to 80, followed by '~' and the first 32 digits
 * of the SHA-256 of the whole name. Two names never share a path, since '%' and '~' are themselves
 * written as %hh; and since the hash of the content is part of the path, no version of an artifact
 * is ever replaced by another, and an earlier one can still be read.
 */
import { name as checkName } from '../../core/checks.ts'
import { RunNameInvalid } from './errors.ts'
import { sha256Of } from './hash.ts'

const RUN_ID = /^[a-z0-9]([a-z0-9._-]{0,98}[a-z0-9])?$/
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)(\.|$)/
const WRITTEN_MAX = 140
const CUT = 80

/** Throws `RunNameInvalid` for what cannot be the id of a run. */
export function checkRunId(runId: unknown): asserts runId is string {
  if (typeof runId !== 'string' || !RUN_ID.test(runId)) {
    const rule =
      "must be 1 to 100 of a-z, 0-9, '.', '_' and '-', with a letter or digit at both ends"
    throw new RunNameInvalid('run id', rule)
  }
  if (DEVICE.test(runId)) throw new RunNameInvalid('run id', 'is the name of a device on Windows')
}

/** Whether a name can be the id of a run. */
export function isRunId(name: string): boolean {
  return RUN_ID.test(name) && !DEVICE.test(name)
}

/** The path of an artifact's content, from the folder of its run on. */
export function artifactPath(name: string, sha256: string): string {
  const why = checkName(name)
  if (why !== undefined) throw new RunNameInvalid('artifact name', why)
  if (!/^[0-9a-f]{64}$/.test(sha256)) {
    throw new RunNameInvalid('artifact name', 'must come with a SHA-256 in lower-case hex')
  }
  return `artifacts/${writtenName(name)}.${sha256}`
}

function writtenName(name: string): string {
  const guarded = name.startsWith('.') || DEVICE.test(name)
  if (!guarded && PLAIN.test(name) && name.length <= WRITTEN_MAX) return name
  const written = [...Buffer.from(name)].map((byte, i) => writtenByte(byte, guarded && i === 0))
  const whole = written.join('')
  if (whole.length <= WRITTEN_MAX) return whole
  return `${whole.slice(0, CUT)}~${sha256Of(Buffer.from(name)).slice(0, 32)}`
}

/** What is written as it is. */
const PLAIN = /^[a-z0-9._-]+$/

function writtenByte(byte: number, special: boolean): string {
  const sign = String.fromCharCode(byte)
  return !special && /[a-z0-9._-]/.test(sign) ? sign : `%${byte.toString(16).padStart(2, '0')}`
}
