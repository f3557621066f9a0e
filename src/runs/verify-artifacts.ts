import { ArtifactChanged, ArtifactMissing } from './errors.ts'
import type { RunFinding, RunReader } from './journal.ts'
import { artifactPath } from './names.ts'

/** Reads every version of every artifact that the log speaks of, and says which are not right. */
export async function findArtifactFaults(reader: RunReader): Promise<RunFinding[]> {
  const findings: RunFinding[] = []
  const seen = new Set<string>()
  for await (const event of reader.events()) {
    if (event.type !== 'ARTIFACT_WRITTEN') continue
    const { name, sha256, path } = event.data
    const own = artifactPath(name, sha256)
    if (path !== own) {
      const message = `Event ${event.seq} names another path for artifact "${name}" than its own`
      findings.push(fault(message, { seq: event.seq, name, path, expected: own }))
    }
    if (seen.has(own)) continue
    seen.add(own)
    try {
      await reader.readArtifact(name, sha256)
    } catch (error) {
      if (!(error instanceof ArtifactChanged) && !(error instanceof ArtifactMissing)) throw error
      findings.push(fault(error.message, error.details))
    }
  }
  return findings
}

function fault(message: string, details: RunFinding['details']): RunFinding {
  return { kind: 'artifact', severity: 'error', message, details }
}
