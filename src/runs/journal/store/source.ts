/** Reads the rows of a run. */
import type { RunTables } from '../../../stores/contract/runs.ts'
import { decodeFailure, type FailureRecord } from '../failure-record.ts'
import { mayLive } from '../holder.ts'
import type { CancelRequest, Holder } from '../journal.ts'
import type { KnownLine, RunSource } from '../source.ts'

/** How many lines one read returns. */
const PAGE = 500

export class StoreSource implements RunSource {
  readonly runId: string
  readonly #tables: RunTables

  constructor(tables: RunTables, runId: string) {
    this.#tables = tables
    this.runId = runId
  }

  async snapshot(): Promise<string | undefined> {
    return (await this.#tables.get(this.runId))?.snapshot
  }

  async known(): Promise<KnownLine | undefined> {
    return (await this.#tables.get(this.runId))?.end
  }

  async *log(): AsyncGenerator<Uint8Array> {
    for (let after = 0; ; after += PAGE) {
      const lines = await this.#tables.lines(this.runId, after, PAGE)
      if (lines.length > 0) yield Buffer.from(lines.map((line) => `${line}\n`).join(''))
      if (lines.length < PAGE) return
    }
  }

  async failures(): Promise<FailureRecord[]> {
    const text = (await this.#tables.get(this.runId))?.failure
    const record = text === undefined ? undefined : decodeFailure(text)
    return record === undefined ? [] : [record]
  }

  artifact(path: string): Promise<Uint8Array | undefined> {
    return this.#tables.content(this.runId, path)
  }

  async looks(): Promise<undefined> {
    // A row has no size and times to compare, and its database protects its content.
    return undefined
  }

  async holder(): Promise<Holder | undefined> {
    const holder = noteOf<Holder>((await this.#tables.get(this.runId))?.holder)
    return holder !== undefined && mayLive(holder) ? holder : undefined
  }

  async cancelRequest(): Promise<CancelRequest | undefined> {
    return noteOf((await this.#tables.get(this.runId))?.cancel)
  }
}

/** Parses a note. Returns `undefined` if it is missing or invalid. */
export function noteOf<T>(text: string | undefined): T | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as T)
  } catch {
    return undefined
  }
}
