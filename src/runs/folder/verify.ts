/** Everything that can be wrong with a run in a folder, found without changing it. */
import type { PawlError } from '../../core/errors.ts'
import { RunLogDamaged } from '../errors.ts'
import type { RunFinding } from '../journal.ts'
import { findArtifactFaults } from '../verify-artifacts.ts'
import type { Disk } from './disk.ts'
import { examine, FolderReader, findFailure } from './reading.ts'

/** What is wrong with a run, or would be mended when it is opened. */
export async function verifyFolder(disk: Disk, runId: string): Promise<RunFinding[]> {
  const reader = new FolderReader(disk, runId)
  try {
    const { log, snapshot, isCurrent } = await examine(disk, runId)
    const findings: RunFinding[] = []
    if (log.torn.length > 0) findings.push(tornTail(log.torn.length))
    if (!isCurrent()) findings.push(lateSnapshot(snapshot))
    return [...findings, ...(await findArtifactFaults(reader))]
  } catch (error) {
    if (!(error instanceof RunLogDamaged)) throw error
    const recorded = (await findFailure(disk, runId)) !== undefined
    return [damagedLog(error, recorded)]
  }
}

function tornTail(bytes: number): RunFinding {
  const message = `${bytes} bytes after the last line are no event`
  return { kind: 'tail', severity: 'notice', message, details: { bytes } }
}

function lateSnapshot(snapshot: { readonly kind: string; readonly why?: string }): RunFinding {
  const { kind, why } = snapshot
  const message =
    kind === 'valid' ? 'The snapshot is older than the log' : `The snapshot is ${kind}`
  return { kind: 'snapshot', severity: 'notice', message, details: { state: kind, why } }
}

function damagedLog({ message, details }: PawlError, recorded: boolean): RunFinding {
  return { kind: 'log', severity: 'error', message, details: { ...details, recorded } }
}
