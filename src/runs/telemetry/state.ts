/**
 * The state of telemetry between processes, in two files for each sink:
 *
 *   <sink>.cursors.json   { <run id>: <seq of the last event that the sink has> }
 *   <sink>.spool.ndjson   events that are in no log, one in each line; its first line may be
 *                         `{"dropped":<n>}`, the number of dropped events
 *
 * Several processes may send to one sink. Each writes whole files, so one can overwrite the cursors
 * of another. Then an event is sent again; receivers recognize it by its id.
 */
import { basename, dirname } from 'node:path'
import type { FileSystem } from '../../core/ports.ts'
import { systemFiles } from '../../environment/files.ts'
import type { Environment } from '../../environment/system.ts'
import { systemLocks } from '../../stores/file-lock.ts'
import { type Disk, readWhole, writeAtomically } from '../journal/folder/disk.ts'
import { withHeld } from '../journal/folder/held.ts'
import type { RefusedEvent } from '../run-log.ts'

const SPOOL_BYTES_MAX = 256 * 1024

/** The events that wait and are in no log. */
export interface Spool {
  readonly events: readonly RefusedEvent[]
  readonly dropped: number
}

export class TelemetryState {
  readonly #disk: Disk
  readonly #folder: string
  readonly #name: string
  #cursors: Map<string, number> | undefined
  #spool: { events: RefusedEvent[]; dropped: number; bytes: number } | undefined

  constructor(folder: string, sink: string, environment: Environment, files?: FileSystem) {
    const own = files ?? systemFiles
    this.#folder = basename(folder)
    this.#disk = { root: dirname(folder), files: own, locks: systemLocks, environment }
    this.#name = encodeURIComponent(sink)
  }

  /** Returns the last event of a run that the sink has, or 0. */
  async cursorOf(runId: string): Promise<number> {
    return (await this.#loadCursors()).get(runId) ?? 0
  }

  /** Stores durably that the sink has the events up to one. */
  async advance(runId: string, seq: number): Promise<void> {
    const cursors = await this.#loadCursors()
    cursors.set(runId, seq)
    const text = JSON.stringify(Object.fromEntries([...cursors].sort()))
    await this.#write('cursors.json', text)
  }

  /** Adds an event to the spool. If the spool is full, drops the oldest and counts them. */
  async add(event: RefusedEvent): Promise<void> {
    const spool = await this.#loadSpool()
    spool.events.push(event)
    spool.bytes += lengthOf(event)
    while (spool.bytes > SPOOL_BYTES_MAX) {
      spool.bytes -= lengthOf(spool.events.shift() as RefusedEvent)
      spool.dropped++
    }
    await this.#writeSpool()
  }

  async spooled(): Promise<Spool> {
    const { events, dropped } = await this.#loadSpool()
    return { events: [...events], dropped }
  }

  /** Removes events that were sent. */
  async sent({ events, dropped }: Spool): Promise<void> {
    const spool = await this.#loadSpool()
    for (const event of events) {
      const index = spool.events.indexOf(event)
      if (index >= 0) spool.bytes -= lengthOf(spool.events.splice(index, 1)[0] as RefusedEvent)
    }
    spool.dropped -= dropped
    await this.#writeSpool()
  }

  async #loadCursors(): Promise<Map<string, number>> {
    if (this.#cursors !== undefined) return this.#cursors
    const text = await this.#read('cursors.json')
    const known = text === undefined ? {} : (parse(text) ?? {})
    // If the file is invalid, everything is sent again.
    this.#cursors ??= new Map(
      Object.entries(known).filter((entry): entry is [string, number] =>
        Number.isSafeInteger(entry[1]),
      ),
    )
    return this.#cursors
  }

  async #loadSpool() {
    if (this.#spool !== undefined) return this.#spool
    const lines = ((await this.#read('spool.ndjson')) ?? '').split('\n').filter(Boolean)
    const values = lines.map(parse).filter((value) => value !== undefined)
    const [first] = values as [{ dropped?: number }?]
    const dropped = first?.dropped ?? 0
    const events = (first?.dropped === undefined
      ? values
      : values.slice(1)) as unknown[] as RefusedEvent[]
    const bytes = events.reduce((sum, event) => sum + lengthOf(event), 0)
    this.#spool ??= { events, dropped, bytes }
    return this.#spool
  }

  async #writeSpool(): Promise<void> {
    const { events, dropped } = await this.#loadSpool()
    const head = dropped > 0 ? [JSON.stringify({ dropped })] : []
    const lines = [...head, ...events.map((event) => JSON.stringify(event)), '']
    await this.#write('spool.ndjson', lines.join('\n'))
  }

  async #read(name: string): Promise<string | undefined> {
    const bytes = await readWhole(this.#disk, this.#pathOf(name))
    return bytes && Buffer.from(bytes).toString('utf8')
  }

  #pathOf(name: string): string {
    return `${this.#disk.root}/${this.#folder}/${this.#name}.${name}`
  }

  async #write(name: string, text: string): Promise<void> {
    const { files } = this.#disk
    const file = `${this.#name}.${name}`
    await files.createFolder(`${this.#disk.root}/${this.#folder}`)
    await withHeld(this.#disk, this.#folder, (disk) =>
      writeAtomically(disk, disk.held.path, file, Buffer.from(text)),
    )
  }
}

function lengthOf(event: RefusedEvent): number {
  return Buffer.byteLength(JSON.stringify(event)) + 1
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return undefined
  }
}
