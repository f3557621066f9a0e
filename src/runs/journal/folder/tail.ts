/**
 * The torn end of a log. Its bytes are copied to `events.torn-<n>`, then removed from the log, then
 * LOG_TAIL_DISCARDED is recorded. After a crash in between, the next `open` continues: it records a
 * copy that the log does not mention, and does not copy the same bytes twice.
 */
import type { FileHandle } from '../../../core/ports.ts'
import type { RunEvent, RunFact } from '../../../core/run/events.ts'
import { sha256Of } from '../hash.ts'
import type { LogReplay } from '../log-replay.ts'
import { type Disk, folderOf, nextNumbered, readWhole, writeAtomically } from './disk.ts'

const TORN_FILE = /^events\.torn-([1-9]\d{0,5})$/

/** Collects the recorded tails. `note` must receive all events. */
export class DiscardedTails {
  readonly #recorded: string[] = []

  readonly note = (event: RunEvent): void => {
    if (event.type === 'LOG_TAIL_DISCARDED') this.#recorded.push(event.data.sha256)
  }

  /** Copies the torn end and removes it from the log. Returns the facts to record. */
  async settle(
    disk: Disk,
    runId: string,
    handle: FileHandle,
    log: Pick<LogReplay, 'torn' | 'wholeBytes'>,
  ): Promise<RunFact[]> {
    const folder = folderOf(disk, runId)
    const names = await disk.files.list(folder)
    const facts = await this.#unrecorded(disk, folder, names)
    if (log.torn.length === 0) return facts
    const fact = factOf(log.torn)
    if (!facts.some((known) => known.data.sha256 === fact.data.sha256)) {
      const name = `events.torn-${nextNumbered(names, TORN_FILE)}`
      await writeAtomically(disk, folder, name, log.torn)
      facts.push(fact)
    }
    await handle.truncate(log.wholeBytes)
    await handle.sync()
    return facts
  }

  /** Returns the facts of copies that the log does not mention. */
  async #unrecorded(disk: Disk, folder: string, names: readonly string[]): Promise<Discarded[]> {
    const recorded = [...this.#recorded]
    const facts: Discarded[] = []
    for (const name of names.filter((own) => TORN_FILE.test(own))) {
      const bytes = await readWhole(disk, `${folder}/${name}`)
      if (bytes === undefined || bytes.length === 0) continue
      const fact = factOf(bytes)
      const known = recorded.indexOf(fact.data.sha256)
      if (known < 0) facts.push(fact)
      else recorded.splice(known, 1)
    }
    return facts
  }
}

type Discarded = Extract<RunFact, { type: 'LOG_TAIL_DISCARDED' }>

function factOf(bytes: Uint8Array): Discarded {
  return {
    type: 'LOG_TAIL_DISCARDED',
    data: { bytes: bytes.length, sha256: sha256Of(bytes) },
  }
}
