/**
 * The torn end of a log. Its bytes are copied aside first, then cut off, and then the log says so.
 * A crash in between is made good by whoever opens the run next: a copy that the log does not speak
 * of is recorded then, and bytes that were copied already are not copied twice.
 */
import type { FileHandle } from '../../../core/ports.ts'
import type { RunEvent, RunFact } from '../../../core/run/events.ts'
import { sha256Of } from '../hash.ts'
import type { LogReplay } from '../log-replay.ts'
import { type Disk, folderOf, nextNumbered, readWhole, writeAtomically } from './disk.ts'

const TORN_FILE = /^events\.torn-([1-9]\d{0,5})$/

/** Remembers what a log says of ends that were cut off; give its `note` to the replay. */
export class DiscardedTails {
  readonly #recorded: string[] = []

  readonly note = (event: RunEvent): void => {
    if (event.type === 'LOG_TAIL_DISCARDED') this.#recorded.push(event.data.sha256)
  }

  /** Sets the torn end aside and cuts it off; gives the facts that must be recorded. */
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

  /** The copies of which the log says nothing. */
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
