/** Checks whole runs: in a journal, and before they are imported. */
import type { PawlError } from '../../core/errors.ts'
import type { Run } from '../../core/run/run.ts'
import type { RunRecords } from '../../doctor/checks/runs-are-whole.ts'
import { ArtifactChanged, ArtifactMissing, RunLogDamaged, RunNameInvalid } from './errors.ts'
import { sha256Of } from './hash.ts'
import type { Author, Journal, RestoredRun, RunFinding, RunReader } from './journal.ts'
import { LogReplay } from './log-replay.ts'
import { artifactPath } from './names.ts'
import { type Examined, examine, findFailure, SourceReader } from './reading.ts'
import type { RunSource } from './source.ts'

/** Returns the faults of a run, and what `open` would repair. Changes nothing. */
export async function verifyRun(source: RunSource): Promise<RunFinding[]> {
  try {
    const { log, snapshot, isCurrent } = await examine(source)
    const findings: RunFinding[] = []
    if (log.torn.length > 0) findings.push(tornTail(log.torn.length))
    if (!isCurrent()) findings.push(lateSnapshot(snapshot(), log.lines))
    return [...findings, ...(await findArtifactFaults(new SourceReader(source)))]
  } catch (error) {
    if (!(error instanceof RunLogDamaged)) throw error
    const recorded = (await findFailure(source)) !== undefined
    return [damagedLog(error, recorded)]
  }
}

/** Reads every version of every artifact in the log. Returns those with a fault. */
async function findArtifactFaults(reader: RunReader): Promise<RunFinding[]> {
  const findings: RunFinding[] = []
  const seen = new Set<string>()
  for await (const event of reader.events()) {
    if (event.type !== 'ARTIFACT_WRITTEN') continue
    const { name, sha256, path } = event.data
    const own = ownPath(name, sha256)
    if (own === undefined) {
      const message = `Event ${event.seq} names an artifact "${name}" that cannot be stored`
      findings.push(artifactFault(message, { seq: event.seq, name, path }))
      continue
    }
    if (path !== own) {
      const message = `Event ${event.seq} has a wrong path for artifact "${name}"`
      findings.push(artifactFault(message, { seq: event.seq, name, path, expected: own }))
    }
    if (seen.has(own)) continue
    seen.add(own)
    try {
      await reader.readArtifact(name, sha256)
    } catch (error) {
      if (!(error instanceof ArtifactChanged) && !(error instanceof ArtifactMissing)) throw error
      findings.push(artifactFault(error.message, error.details))
    }
  }
  return findings
}

function ownPath(name: string, sha256: string): string | undefined {
  try {
    return artifactPath(name, sha256)
  } catch (error) {
    if (error instanceof RunNameInvalid) return undefined
    throw error
  }
}

function tornTail(bytes: number): RunFinding {
  const message = `${bytes} bytes after the last line are not an event`
  return { kind: 'tail', severity: 'notice', message, details: { bytes } }
}

/** A notice, because opening the run writes the snapshot again. */
function lateSnapshot(snapshot: ReturnType<Examined['snapshot']>, lines: number): RunFinding {
  const { kind } = snapshot
  const isLate = kind === 'valid' && snapshot.snapshot.last_seq < lines
  const what = isLate ? 'is older than the log' : 'differs from the log. The log is right'
  const message = `The snapshot ${kind === 'valid' ? what : `is ${kind}`}`
  const why = kind === 'invalid' ? snapshot.why : undefined
  return { kind: 'snapshot', severity: 'notice', message, details: { state: kind, why } }
}

function damagedLog({ message, details }: PawlError, recorded: boolean): RunFinding {
  return { kind: 'log', severity: 'error', message, details: { ...details, recorded } }
}

function artifactFault(message: string, details: RunFinding['details']): RunFinding {
  return { kind: 'artifact', severity: 'error', message, details }
}

/** The journal as the doctor checks and repairs it. `name` is shown in its report. */
export function recordsOf(journal: Journal, name: string, author: Author): RunRecords {
  return {
    name,
    list: () => journal.list(),
    verify: (runId) => journal.verify(runId),
    // Opening a run sets its torn tail aside and writes its snapshot.
    mend: async (runId) => (await journal.open(runId, author)).close(),
  }
}

/**
 * Checks a run before it is imported, by the rules of `verify`: its lines, the names and paths of
 * its artifacts, and that it has exactly the contents that its lines name. Throws `RunLogDamaged`,
 * `RunNameInvalid` and `ArtifactMissing`.
 */
export function checkRestored(restored: RestoredRun): { run: Run; lastHash: string } {
  const { runId, lines, artifacts } = restored
  const wanted = new Map<string, { readonly name: string; readonly sha256: string }>()
  let [line, offset] = [0, 0]
  const log = new LogReplay(runId, {
    onEvent: (event) => {
      if (event.type !== 'ARTIFACT_WRITTEN') return
      const { name, sha256, path } = event.data
      const own = artifactPath(name, sha256)
      wanted.set(own, { name, sha256 })
      if (path === own) return
      const why = `it has a wrong path for artifact "${name}"`
      throw new RunLogDamaged(runId, { line, offset, why })
    },
  })
  for (const text of lines) {
    line++
    const bytes = Buffer.from(`${text}\n`)
    log.feed(bytes)
    offset += bytes.length
  }
  // A line feed inside a line makes two lines.
  if (log.run === null || log.lines !== lines.length) {
    throw new RunLogDamaged(runId, { line: 0, offset: 0, why: 'it has no lines' })
  }
  for (const { name, content } of artifacts) {
    if (wanted.delete(artifactPath(name, sha256Of(content)))) continue
    throw new RunNameInvalid(
      'artifact name',
      `"${name}" has a content that no event names, or has it twice`,
    )
  }
  for (const { name, sha256 } of wanted.values()) throw new ArtifactMissing(runId, name, sha256)
  return { run: log.run, lastHash: log.lastHash }
}
