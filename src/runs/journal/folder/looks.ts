/**
 * A cache of the sizes and times of checked contents, version 1: `.looks.json`.
 *
 *   { "looks": { <path of the content>: [<size>, <time of change>, <inode>] }, "version": 1 }
 *
 * Resuming a run does not read a content whose file is unchanged. Only the holder writes the cache.
 * It may be deleted at any time, and invalid entries are ignored. It contains only settled looks
 * (`../looks.ts`), and only those of current artifacts.
 */
import { encode } from '../../../core/canonical-json.ts'
import { Turns } from '../../../environment/turns.ts'
import { isSameLook, isSettled, type Look } from '../looks.ts'
import type { ArtifactLooks, JudgeContent } from '../source.ts'
import {
  ARTIFACTS,
  type Disk,
  folderOf,
  LOOKS,
  readSeen,
  readWhole,
  writeAtomically,
} from './disk.ts'

const BOUNDS = { depthMax: 4, bytesMax: 64 * 1024 * 1024 }

interface Folders {
  readonly run: string
  readonly contents: string
}

export class FolderLooks implements ArtifactLooks {
  readonly #disk: Disk
  readonly #folder: string
  readonly #contents: string
  readonly #known: Map<string, Look>
  readonly #found = new Map<string, Look>()
  readonly #turns: Turns

  private constructor(disk: Disk, folders: Folders, known: Map<string, Look>) {
    this.#disk = disk
    this.#folder = folders.run
    this.#contents = folders.contents
    this.#known = known
    this.#turns = new Turns(disk.environment)
  }

  static async load(disk: Disk, runId: string, contents: string): Promise<FolderLooks> {
    const run = folderOf(disk, runId)
    return new FolderLooks(disk, { run, contents }, await readLooks(disk, `${run}/${LOOKS}`))
  }

  async check(path: string, paranoid: boolean, judge: JudgeContent): Promise<void> {
    // Small files are read synchronously, so the event loop needs a turn now and then.
    if (this.#turns.isDue) await this.#turns.next()
    const { files, environment } = this.#disk
    const lookedAtMs = environment.clock.now()
    const file = `${this.#contents}/${path.slice(ARTIFACTS.length + 1)}`
    const seen = await files.info(file)
    const known = this.#known.get(path)
    const isKnown = seen?.kind === 'file' && known !== undefined && isSameLook(known, seen)
    if (isKnown && !paranoid) {
      this.#found.set(path, known)
      return
    }
    const read = await readSeen(this.#disk, file, seen)
    judge(read?.bytes)
    // If the file changed while it was read, the cache must not contain it.
    if (read === undefined || !isSameLook(read.before, read.after)) return
    if (isKnown && isSameLook(known, read.after)) this.#found.set(path, known)
    else if (isSettled(read.before, lookedAtMs)) this.#found.set(path, read.before)
  }

  async keep(): Promise<void> {
    const found = [...this.#found]
    const isKnown = ([path, look]: [string, Look]) => this.#known.get(path) === look
    if (found.length === this.#known.size && found.every(isKnown)) return
    const looks = found.map(([path, { size, modified, inode }]) => [path, [size, modified, inode]])
    try {
      const text = encode({ looks: Object.fromEntries(looks), version: 1 }, BOUNDS)
      await writeAtomically(this.#disk, this.#folder, LOOKS, Buffer.from(`${text}\n`))
    } catch {
      // Without the cache, the contents are read again.
    }
  }
}

async function readLooks(disk: Disk, path: string): Promise<Map<string, Look>> {
  try {
    const bytes = await readWhole(disk, path)
    const { looks, version } = JSON.parse(Buffer.from(bytes ?? []).toString())
    if (version !== 1) return new Map()
    return new Map(
      Object.entries(looks).map(([content, look]) => {
        const [size, modified, inode] = look as [number, string, string]
        return [content, { size, modified, inode }]
      }),
    )
  } catch {
    return new Map()
  }
}
