/** Reads the files of a run. */
import { decodeFailure, type FailureRecord } from '../failure-record.ts'
import { mayLive } from '../holder.ts'
import type { CancelRequest, Holder } from '../journal.ts'
import type { ArtifactLooks, RunSource } from '../source.ts'
import {
  ARTIFACTS,
  artifactsOf,
  CANCEL,
  chunksOf,
  type Disk,
  folderOf,
  HOLDER,
  LOG,
  openToRead,
  readWhole,
  SNAPSHOT,
} from './disk.ts'
import { FolderLooks } from './looks.ts'

/** The names of records of failure. */
export const FAILED_FILE = /^events\.failed-([1-9]\d{0,5})\.ndjson$/

export class FolderSource implements RunSource {
  readonly runId: string
  readonly #disk: Disk
  readonly #folder: string

  constructor(disk: Disk, runId: string) {
    this.#disk = disk
    this.runId = runId
    this.#folder = folderOf(disk, runId)
  }

  async snapshot(): Promise<string | undefined> {
    const bytes = await readWhole(this.#disk, `${this.#folder}/${SNAPSHOT}`)
    return bytes && Buffer.from(bytes).toString()
  }

  async known(): Promise<undefined> {
    // In a folder, only the snapshot records the end of the log.
    return undefined
  }

  async *log(): AsyncGenerator<Uint8Array> {
    const opened = await openToRead(this.#disk, `${this.#folder}/${LOG}`)
    if (opened === undefined) return
    try {
      yield* chunksOf(opened.handle)
    } finally {
      await opened.handle.close()
    }
  }

  async failures(): Promise<FailureRecord[]> {
    const names = await this.#disk.files.list(this.#folder)
    const records: FailureRecord[] = []
    for (const name of names.filter((own) => FAILED_FILE.test(own))) {
      const bytes = await readWhole(this.#disk, `${this.#folder}/${name}`)
      const record = bytes && decodeFailure(Buffer.from(bytes).toString())
      if (record !== undefined) records.push(record)
    }
    return records
  }

  async artifact(path: string): Promise<Uint8Array | undefined> {
    const folder = await artifactsOf(this.#disk, this.runId)
    if (folder === undefined) return undefined
    return readWhole(this.#disk, `${folder}/${path.slice(ARTIFACTS.length + 1)}`)
  }

  async looks(): Promise<ArtifactLooks | undefined> {
    const contents = await artifactsOf(this.#disk, this.runId)
    if (contents === undefined) return undefined
    return FolderLooks.load(this.#disk, this.runId, contents)
  }

  async holder(): Promise<Holder | undefined> {
    const holder = await this.#note<Holder>(HOLDER)
    return holder !== undefined && mayLive(holder) ? holder : undefined
  }

  cancelRequest(): Promise<CancelRequest | undefined> {
    return this.#note(CANCEL)
  }

  /** Parses a small JSON file. Returns `undefined` if it is missing or invalid. */
  async #note<T>(name: string): Promise<T | undefined> {
    const bytes = await readWhole(this.#disk, `${this.#folder}/${name}`)
    try {
      return bytes && (JSON.parse(Buffer.from(bytes).toString()) as T)
    } catch {
      return undefined
    }
  }
}
