import type { Run } from '../../core/run/run.ts'
import { ArtifactMissing, RunLogDamaged, RunNameInvalid } from './errors.ts'
import { sha256Of } from './hash.ts'
import type { RestoredRun } from './journal.ts'
import { LogReplay } from './log-replay.ts'
import { artifactPath } from './names.ts'

/**
 * Checks a run that comes from elsewhere, by every rule of `verify`: its lines, the names and paths
 * of its artifacts, and that it brings each content that its lines speak of, and no other. Throws
 * `RunLogDamaged`, `RunNameInvalid` and `ArtifactMissing`.
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
      const why = `it names another path for artifact "${name}" than its own`
      throw new RunLogDamaged(runId, { line, offset, why })
    },
  })
  for (const text of lines) {
    line++
    const bytes = Buffer.from(`${text}\n`)
    log.feed(bytes)
    offset += bytes.length
  }
  // A line feed inside a line would make two of it.
  if (log.run === null || log.lines !== lines.length) {
    throw new RunLogDamaged(runId, { line: 0, offset: 0, why: 'it has no lines' })
  }
  for (const { name, content } of artifacts) {
    if (wanted.delete(artifactPath(name, sha256Of(content)))) continue
    throw new RunNameInvalid(
      'artifact name',
      `"${name}" comes with a content of no event, or twice`,
    )
  }
  for (const { name, sha256 } of wanted.values()) throw new ArtifactMissing(runId, name, sha256)
  return { run: log.run, lastHash: log.lastHash }
}
