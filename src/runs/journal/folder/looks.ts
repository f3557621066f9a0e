/**
 * What the contents of artifacts looked like when they were last found right, version 1:
 * `.looks.json`.
 *
 *   { "looks": { <path of the content>: [<size>, <time of change>, <inode>] }, "version": 1 }
 *
 * A content whose file still looks so is not read again when the run is resumed. This is a cache
 * and nothing more: only the holder writes it, it may be deleted at any time, and whatever in it
 * cannot be understood counts as absent. It holds only looks that are settled (`../looks.ts`), and
 * only of artifacts that the run has now.
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

/** The folder of a run, and the one of its artifacts. */
interface Folders {
  readonly run: string
  readonly contents: string
}

/** The looks of one run's artifacts. */
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
    // Small files are read in this thread, one after the other.
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
    // What another has put into its place meanwhile was not read, and looks different.
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
      // Without it, the contents are read again the next time.
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
