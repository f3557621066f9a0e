/**
 * A bundle: a run as one file, to move it to another journal. Version 1.
 *
 * Lines in UTF-8, each ended by a line feed. The first is an object in canonical JSON:
 *
 *   format     "pawl-run-bundle"
 *   version    1
 *   run_id
 *   events     how many lines of events follow
 *   last_hash  the SHA-256 of the last of them
 *   artifacts  how many lines of artifacts follow those
 *
 * Then the unchanged lines of the log. Their chain of hashes protects them, and the header protects
 * their end. Then one object for each version of each artifact in the log, in the order of name and
 * hash: `name`, `sha256` and `content`, in base64.
 *
 * The same run makes the same bundle in every journal, byte for byte.
 */
import { encode } from '../../core/canonical-json.ts'
import { ArtifactMissing, BundleInvalid, RunLogDamaged, RunNameInvalid } from './errors.ts'
import { LINE_BYTES_MAX } from './event-line.ts'
import { sha256Of } from './hash.ts'
import type { Journal, RestoredRun, RunReader } from './journal.ts'
import { checkRunId } from './names.ts'
import { checkRestored } from './verify.ts'

const FORMAT = 'pawl-run-bundle'
const CONTENT_BOUNDS = { depthMax: 2, bytesMax: 512 * 1024 * 1024 }
/** An imported run is in memory until all of it was checked. */
const BUNDLE_CHARACTERS_MAX = 2 ** 30

/** Yields the lines of a run's bundle, without line feeds. Throws if the run is damaged. */
export async function* exportRun(journal: Journal, runId: string): AsyncGenerator<string> {
  const reader = await journal.read(runId)
  const { run, lastHash, damage } = await reader.replay()
  if (damage !== undefined) throw new RunLogDamaged(runId, damage)
  const artifacts = await artifactsOf(reader, run.last_seq)
  yield encode({
    format: FORMAT,
    version: 1,
    run_id: runId,
    events: run.last_seq,
    last_hash: lastHash,
    artifacts: artifacts.length,
  })
  let left = run.last_seq
  for await (const line of reader.lines()) {
    // A writer may have added to the log since the header was made.
    if (left-- === 0) break
    yield line
  }
  for (const { name, sha256 } of artifacts) {
    const content = Buffer.from(await reader.readArtifact(name, sha256)).toString('base64')
    yield encode({ name, sha256, content }, CONTENT_BOUNDS)
  }
}

/** Imports the run of a bundle. Nothing is written before all of it was checked. */
export async function importRun(
  journal: Journal,
  lines: AsyncIterable<string> | Iterable<string>,
): Promise<{ readonly runId: string; readonly outcome: 'restored' | 'same' }> {
  const restored = await readBundle(lines)
  return { runId: restored.runId, outcome: await journal.restore(restored) }
}

/** Returns every version of every artifact in the events up to one, sorted by name and hash. */
export async function artifactsOf(
  reader: RunReader,
  to: number,
): Promise<{ readonly name: string; readonly sha256: string }[]> {
  const found = new Map<string, { name: string; sha256: string }>()
  for await (const event of reader.events({ to })) {
    if (event.type !== 'ARTIFACT_WRITTEN') continue
    const { name, sha256 } = event.data
    found.set(encode([name, sha256]), { name, sha256 })
  }
  const keys = [...found.keys()].sort()
  return keys.map((key) => found.get(key) as { name: string; sha256: string })
}

interface Header {
  readonly run_id: string
  readonly events: number
  readonly last_hash: string
  readonly artifacts: number
}

async function readBundle(lines: AsyncIterable<string> | Iterable<string>): Promise<RestoredRun> {
  let header: Header | undefined
  const events: string[] = []
  const artifacts: Artifact[] = []
  let number = 0
  let characters = 0
  for await (const line of lines) {
    number++
    characters += line.length
    if (characters > BUNDLE_CHARACTERS_MAX) throw new BundleInvalid(number, 'makes it too large')
    if (header === undefined) header = readHeader(line)
    else if (events.length < header.events) events.push(checkLength(line, number))
    else if (artifacts.length < header.artifacts) artifacts.push(readArtifact(line, number))
    else throw new BundleInvalid(number, 'follows the end')
  }
  if (header === undefined) throw new BundleInvalid(1, 'is missing')
  assertCounted(number, 'events', header.events, events.length)
  assertCounted(number, 'artifacts', header.artifacts, artifacts.length)
  const restored = { runId: header.run_id, lines: events, artifacts }
  checkWhole(restored, header)
  return restored
}

function assertCounted(lines: number, what: string, wanted: number, found: number): void {
  if (found === wanted) return
  throw new BundleInvalid(lines + 1, `is missing: the bundle has ${found} of ${wanted} ${what}`)
}

interface Artifact {
  readonly name: string
  readonly sha256: string
  readonly content: Uint8Array
}

/** Checks the log, its end and its contents. */
function checkWhole(restored: RestoredRun, { last_hash }: Header): void {
  let lastHash: string
  try {
    lastHash = checkRestored(restored).lastHash
  } catch (error) {
    if (error instanceof RunNameInvalid) throw new BundleInvalid(0, error.message)
    if (error instanceof ArtifactMissing) {
      const { name } = error.details
      const line = 2 + restored.lines.length + restored.artifacts.length
      throw new BundleInvalid(line, `is missing: it should be the content of artifact "${name}"`)
    }
    if (!(error instanceof RunLogDamaged)) throw error
    throw new BundleInvalid(error.damage.line + 1, `is not a line of the log: ${error.damage.why}`)
  }
  if (lastHash !== last_hash) throw new BundleInvalid(1, 'does not have the hash of the last event')
}

function readHeader(line: string): Header {
  const { format, version, run_id, events, last_hash, artifacts } = readObject(line, 1)
  if (format !== FORMAT) throw new BundleInvalid(1, 'is not the beginning of a bundle')
  if (version !== 1)
    throw new BundleInvalid(1, `has version ${version}, which this version of Pawl does not know`)
  checkRunId(run_id)
  const counts = [events, artifacts].every((count) => Number.isSafeInteger(count))
  if (!counts || typeof last_hash !== 'string') throw new BundleInvalid(1, 'lacks a field')
  return { run_id, events: events as number, last_hash, artifacts: artifacts as number }
}

function readArtifact(line: string, number: number): Artifact {
  const { name, sha256, content } = readObject(line, number)
  if (typeof name !== 'string' || typeof content !== 'string' || typeof sha256 !== 'string') {
    throw new BundleInvalid(number, 'is not an artifact')
  }
  const bytes = Buffer.from(content, 'base64')
  if (sha256Of(bytes) !== sha256) throw new BundleInvalid(number, 'does not have its hash')
  return { name, sha256, content: bytes }
}

function readObject(line: string, number: number): Partial<Record<string, unknown>> {
  try {
    return (JSON.parse(line) ?? {}) as Partial<Record<string, unknown>>
  } catch {
    throw new BundleInvalid(number, 'is not JSON')
  }
}

function checkLength(line: string, number: number): string {
  if (line.length > LINE_BYTES_MAX) throw new BundleInvalid(number, 'is too long')
  return line
}
