/**
 * How names become paths. Names are not trusted: a path must not lead out of the run's folder, and
 * two names must not share a path on a file system that ignores case.
 *
 * A run id is the name of its folder: 1 to 100 of a-z, 0-9, '.', '_' and '-', with a letter or
 * digit at both ends. Names that Windows reserves for devices are rejected (con, nul, com1 …, also
 * before a dot).
 *
 * An artifact may have any name that the core allows. Its file is
 *
 *   artifacts/<name>.<sha256>
 *
 * In the name, a-z, 0-9, '_', '-' and '.' stay as they are. Every other byte of its UTF-8 is
 * written as %hh, as are a dot at the beginning and the first letter of a device name. An encoded
 * name of more than 140 characters is cut to 80, followed by '~' and the first 32 digits of the
 * SHA-256 of the whole name. Two names never share a path, because '%' and '~' are encoded too. The
 * path contains the hash of the content, so no version of an artifact replaces another.
 */
import { name as checkName } from '../../core/checks.ts'
import { RunNameInvalid } from './errors.ts'
import { sha256Of } from './hash.ts'

const RUN_ID = /^[a-z0-9]([a-z0-9._-]{0,98}[a-z0-9])?$/
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)(\.|$)/
const WRITTEN_MAX = 140
const CUT = 80

/** Throws `RunNameInvalid` if a value is not a valid run id. */
export function checkRunId(runId: unknown): asserts runId is string {
  if (typeof runId !== 'string' || !RUN_ID.test(runId)) {
    const rule =
      "must be 1 to 100 of a-z, 0-9, '.', '_' and '-', with a letter or digit at both ends"
    throw new RunNameInvalid('run id', rule)
  }
  if (DEVICE.test(runId)) throw new RunNameInvalid('run id', 'is the name of a device on Windows')
}

export function isRunId(name: string): boolean {
  return RUN_ID.test(name) && !DEVICE.test(name)
}

/** Returns the path of an artifact's content, relative to the folder of its run. */
export function artifactPath(name: string, sha256: string): string {
  const why = checkName(name)
  if (why !== undefined) throw new RunNameInvalid('artifact name', why)
  if (!/^[0-9a-f]{64}$/.test(sha256)) {
    throw new RunNameInvalid('artifact name', 'must have a SHA-256 in lower-case hex')
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

const PLAIN = /^[a-z0-9._-]+$/

function writtenByte(byte: number, special: boolean): string {
  const sign = String.fromCharCode(byte)
  return !special && /[a-z0-9._-]/.test(sign) ? sign : `%${byte.toString(16).padStart(2, '0')}`
}
