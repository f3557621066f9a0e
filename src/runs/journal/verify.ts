/** Everything that can be wrong with a run, found without changing it. */
import type { PawlError } from '../../core/errors.ts'
import { ArtifactChanged, ArtifactMissing, RunLogDamaged, RunNameInvalid } from './errors.ts'
import type { RunFinding, RunReader } from './journal.ts'
import { artifactPath } from './names.ts'
import { type Examined, examine, findFailure, SourceReader } from './reading.ts'
import type { RunSource } from './source.ts'

/** What is wrong with a run, or would be mended when it is opened. */
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

/** Reads every version of every artifact that the log speaks of, and says which are not right. */
async function findArtifactFaults(reader: RunReader): Promise<RunFinding[]> {
  const findings: RunFinding[] = []
  const seen = new Set<string>()
  for await (const event of reader.events()) {
    if (event.type !== 'ARTIFACT_WRITTEN') continue
    const { name, sha256, path } = event.data
    const own = ownPath(name, sha256)
    if (own === undefined) {
      const message = `Event ${event.seq} names an artifact "${name}" that cannot be kept`
      findings.push(artifactFault(message, { seq: event.seq, name, path }))
      continue
    }
    if (path !== own) {
      const message = `Event ${event.seq} names another path for artifact "${name}" than its own`
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
  const message = `${bytes} bytes after the last line are no event`
  return { kind: 'tail', severity: 'notice', message, details: { bytes } }
}

/** Whoever opens the run writes the snapshot again, so it is worth a notice and no more. */
function lateSnapshot(snapshot: ReturnType<Examined['snapshot']>, lines: number): RunFinding {
  const { kind } = snapshot
  const isLate = kind === 'valid' && snapshot.snapshot.last_seq < lines
  const what = isLate ? 'is older than the log' : 'says something else than the log, which counts'
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
