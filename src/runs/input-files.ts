/**
 * Input files: files outside of the run that it depends on. The run copies them as artifacts.
 * Resuming the run checks them again: a changed file is copied again, and whatever depends on it
 * becomes stale.
 *
 * The artifact `run:inputs` records their paths:
 *
 *   { "files":   { <artifact>: { path, size, modified, modifiedAtMs, inode, sha256, lookedAtMs,
 *                                folder } },
 *     "folders": { <artifact>: { path, extensions } } }
 *
 * A file with unchanged size and times (`journal/looks.ts`) is not read again, unless `paranoid`.
 *
 * A folder is an artifact too: the sorted list of the artifacts of its files. So an item that reads
 * it runs again if files are added or removed. Names that begin with a dot are ignored. Links are
 * refused.
 */
import { encode } from '../core/canonical-json.ts'
import { name as checkName } from '../core/checks.ts'
import { CommandInvalid } from '../core/errors.ts'
import type { FileInfo } from '../core/ports.ts'
import type { RunCommand } from '../core/run/commands.ts'
import { entryOf, type Run } from '../core/run/run.ts'
import { ARTIFACT_JSON } from './artifacts.ts'
import { InputFileInvalid } from './errors.ts'
import type { InputDisk } from './input-disk.ts'
import { ArtifactChanged, ArtifactMissing } from './journal/errors.ts'
import { sha256Of } from './journal/hash.ts'
import type { Author, StoredArtifact } from './journal/journal.ts'
import { isSameLook, isSettled } from './journal/looks.ts'
import type { RunLog } from './run-log.ts'

/** A folder whose files are inputs. */
export interface InputFolder {
  readonly path: string
  /** Takes only files with these endings, such as `.md`. Default: all files. */
  readonly extensions?: readonly string[]
}

interface FileEntry extends Pick<FileInfo, 'size' | 'modified' | 'modifiedAtMs' | 'inode'> {
  readonly path: string
  readonly sha256: string
  readonly lookedAtMs: number
  /** The input folder that contains it; null if it was named by `inputFile`. */
  readonly folder: string | null
}

interface Manifest {
  readonly files: Readonly<Record<string, FileEntry>>
  readonly folders: Readonly<Record<string, { path: string; extensions: readonly string[] }>>
}

/** The `writer_worker` of copies. */
const OUTSIDE = 'outside'
const MANIFEST = 'run:inputs'
const FILE_BYTES_MAX = 256 * 1024 * 1024
const FILES_MAX = 10_000
const DEPTH_MAX = 32
const LOOKS_MAX = 3

/** An input file with a new content. */
export interface InputChange {
  readonly name: string
  readonly output: StoredArtifact
}

export interface InputParts {
  readonly disk: InputDisk
  readonly now: () => number
  /** Stores a content. `explain` uses `keepNothing`, which only computes the hash. */
  readonly keep: (name: string, content: Uint8Array) => Promise<StoredArtifact>
  readonly read: (name: string, sha256: string) => Promise<Uint8Array>
}

export interface LookOptions {
  readonly paranoid: boolean
  /** Artifacts with a missing or changed content. Their files are read again. */
  readonly damaged: ReadonlySet<string>
}

/** Returns the hash of a content without storing it. */
export async function keepNothing(_name: string, content: Uint8Array): Promise<StoredArtifact> {
  return { path: '-', sha256: sha256Of(content) }
}

/** Checks every input file of a run. Returns those that changed, and the new `run:inputs`. */
export async function lookAgain(
  parts: InputParts,
  run: Run,
  options: LookOptions,
): Promise<InputChange[]> {
  const manifest = await readManifest(parts, run)
  const look = new Look(parts, run, manifest, options)
  for (const [name, folder] of Object.entries(manifest.folders)) await look.takeFolder(name, folder)
  for (const [name, { path, folder }] of Object.entries(manifest.files)) {
    if (folder === null) await look.takeFile(name, path)
  }
  return look.changes()
}

/** Returns true if an artifact is a copy of an input file, so that it can be copied again. */
export function isCopy(run: Run, name: string): boolean {
  return name !== MANIFEST && entryOf(run.artifacts_index, name)?.writer_worker === OUTSIDE
}

/**
 * Returns the commands that make changed input files artifacts of the run. If a file changed since
 * it was first copied, the count of fix attempts starts again. That command comes first: after a
 * crash in between, the change is found again.
 */
export function takeCommands(run: Run, changes: readonly InputChange[]): RunCommand[] {
  const changed = changes.find(({ name, output }) => {
    const before = entryOf(run.artifacts_index, name)
    return !name.startsWith('run:') && before !== undefined && before.sha256 !== output.sha256
  })
  const reset: RunCommand[] =
    changed === undefined ? [] : [{ kind: 'reset-fixes', because: changed.name }]
  const taken = changes.map(
    ({ name, output }): RunCommand => ({
      kind: 'write-artifact',
      name,
      ...output,
      worker: OUTSIDE,
    }),
  )
  return [...reset, ...taken]
}

/** The input files of a run that this process works on. Calls run one after the other. */
export class Inputs {
  readonly #log: RunLog
  readonly #parts: InputParts
  #last: Promise<unknown> = Promise.resolve()

  constructor(log: RunLog, parts: Pick<InputParts, 'disk' | 'now'>) {
    this.#log = log
    const { writer } = log
    this.#parts = {
      ...parts,
      keep: (name, content) => writer.writeArtifact(name, content),
      read: (name, sha256) => writer.readArtifact(name, sha256),
    }
  }

  async takeFile(author: Author, name: string, path: string): Promise<void> {
    await this.#take(author, (look) => look.takeFile(name, path))
  }

  /** Copies the files of a folder. Returns the names of their artifacts, sorted. */
  takeFolder(author: Author, name: string, folder: InputFolder): Promise<string[]> {
    const { path, extensions = [] } = folder
    return this.#take(author, (look) => look.takeFolder(name, { path, extensions }))
  }

  #take<T>(author: Author, take: (look: Look) => Promise<T>): Promise<T> {
    const taken = this.#last.then(async () => {
      const run = this.#log.run
      const manifest = await readManifest(this.#parts, run)
      const look = new Look(this.#parts, run, manifest, { paranoid: false, damaged: new Set() })
      const result = await take(look)
      await this.#log.applyCommand(author, ...takeCommands(run, await look.changes()))
      return result
    })
    this.#last = taken.catch(() => {})
    return taken
  }
}

/** One check of input files: collects what changed, and the new `run:inputs`. */
class Look {
  readonly #parts: InputParts
  readonly #run: Run
  readonly #options: LookOptions
  readonly #files: Map<string, FileEntry>
  readonly #folders: Map<string, Manifest['folders'][string]>
  readonly #changes = new Map<string, InputChange>()

  constructor(parts: InputParts, run: Run, manifest: Manifest, options: LookOptions) {
    this.#parts = parts
    this.#run = run
    this.#options = options
    this.#files = new Map(Object.entries(manifest.files))
    this.#folders = new Map(Object.entries(manifest.folders))
  }

  async takeFile(name: string, path: string, folder: string | null = null): Promise<void> {
    checkInput(name, path)
    const known = this.#files.get(name)
    const { disk } = this.#parts
    for (let looks = 1; looks <= LOOKS_MAX; looks++) {
      const lookedAtMs = this.#parts.now()
      const before = infoOf(path, await disk.info(path))
      if (known?.path === path && this.#isKnown(name, known, before)) return
      const content = await disk.read(path)
      if (!isSameLook(before, infoOf(path, await disk.info(path)))) continue
      const { size, modified, modifiedAtMs, inode } = before
      const output = await this.#parts.keep(name, content)
      const { sha256 } = output
      const seen = { path, size, modified, modifiedAtMs, inode, sha256, lookedAtMs, folder }
      this.#files.set(name, seen)
      if (this.#hashOf(name) !== sha256) this.#changes.set(name, { name, output })
      return
    }
    throw new InputFileInvalid(path, 'it changed while it was read')
  }

  async takeFolder(name: string, folder: Manifest['folders'][string]): Promise<string[]> {
    checkInput(name, folder.path)
    const found = await this.#list(folder, '', 0)
    const names = found.map((path) => `${name}/${path}`)
    for (const [i, path] of found.entries()) {
      await this.takeFile(names[i] as string, `${folder.path}/${path}`, name)
    }
    for (const [file, entry] of this.#files) {
      if (entry.folder === name && !names.includes(file)) this.#files.delete(file)
    }
    this.#folders.set(name, folder)
    await this.#keepText(name, encode(names, ARTIFACT_JSON))
    return names
  }

  /** Returns the changes, including `run:inputs`. */
  async changes(): Promise<InputChange[]> {
    const files = Object.fromEntries(this.#files)
    const folders = Object.fromEntries(this.#folders)
    if (this.#files.size + this.#folders.size > 0) {
      await this.#keepText(MANIFEST, encode({ files, folders }, ARTIFACT_JSON))
    }
    return [...this.#changes.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  async #keepText(name: string, text: string): Promise<void> {
    if (sha256Of(text) === this.#hashOf(name) && !this.#options.damaged.has(name)) return
    const output = await this.#parts.keep(name, Buffer.from(text))
    this.#changes.set(name, { name, output })
  }

  #hashOf(name: string): string | undefined {
    return entryOf(this.#run.artifacts_index, name)?.sha256
  }

  #isKnown(name: string, known: FileEntry, now: FileInfo): boolean {
    const { paranoid, damaged } = this.#options
    const mayBeKnown = !paranoid && !damaged.has(name)
    return mayBeKnown && isSettled(known, known.lookedAtMs) && isSameLook(known, now)
  }

  /** Returns the paths of the files below a folder, relative to it, sorted. */
  async #list(
    folder: Manifest['folders'][string],
    below: string,
    depth: number,
  ): Promise<string[]> {
    const { disk } = this.#parts
    const here = below === '' ? folder.path : `${folder.path}/${below}`
    const info = await disk.info(here)
    if (info?.kind !== 'folder') throw new InputFileInvalid(here, notA('folder', info))
    if (depth > DEPTH_MAX) throw new InputFileInvalid(here, `it has more than ${DEPTH_MAX} levels`)
    const found: string[] = []
    for (const entry of (await disk.list(here)).filter((each) => !each.startsWith('.'))) {
      const path = below === '' ? entry : `${below}/${entry}`
      const { kind } = (await disk.info(`${folder.path}/${path}`)) ?? {}
      if (kind === 'folder') found.push(...(await this.#list(folder, path, depth + 1)))
      else if (isWanted(folder, entry)) found.push(path)
      if (found.length > FILES_MAX) {
        throw new InputFileInvalid(here, `it has more than ${FILES_MAX} files`)
      }
    }
    return found.sort()
  }
}

async function readManifest({ read }: InputParts, run: Run): Promise<Manifest> {
  const known = entryOf(run.artifacts_index, MANIFEST)
  if (known === undefined) return NO_INPUTS
  try {
    const content = await read(MANIFEST, known.sha256)
    return JSON.parse(new TextDecoder().decode(content)) as Manifest
  } catch (error) {
    // Without it, the run rewinds to the node that takes its inputs.
    if (error instanceof ArtifactMissing || error instanceof ArtifactChanged) return NO_INPUTS
    throw error
  }
}

const NO_INPUTS: Manifest = { files: {}, folders: {} }

function checkInput(name: string, path: string): void {
  const why = checkName(name) ?? (name.startsWith('run:') ? 'must not begin with run:' : undefined)
  if (why !== undefined) throw new CommandInvalid('input', why)
  if (typeof path !== 'string' || path === '' || path.includes('\0')) {
    throw new CommandInvalid('path', 'must be the path of a file')
  }
}

function infoOf(path: string, info: FileInfo | undefined): FileInfo {
  if (info?.kind !== 'file') throw new InputFileInvalid(path, notA('file', info))
  if (info.size <= FILE_BYTES_MAX) return info
  throw new InputFileInvalid(path, `it is larger than ${FILE_BYTES_MAX} bytes`)
}

function notA(wanted: string, info: FileInfo | undefined): string {
  return info === undefined ? 'it does not exist' : `it is a ${info.kind}, not a ${wanted}`
}

function isWanted({ extensions }: Manifest['folders'][string], name: string): boolean {
  return extensions.length === 0 || extensions.some((extension) => name.endsWith(extension))
}
