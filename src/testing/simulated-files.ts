/**
 * A file system in memory that can lose power. It is deterministic: the same random numbers and
 * operations lead to the same losses.
 *
 * Each file has a content on disk and a list of changes since its last sync; each folder has the
 * same for its entries. When the power fails, each unsynced change is kept or lost independently.
 * The last write that is kept may be cut at any byte, and a gap before it reads as zeros. When only
 * a process dies, only its locks are lost. After a failed sync, the bytes stay readable but never
 * reach the disk, as on Linux.
 */
import type {
  FileHandle,
  FileInfo,
  FileLock,
  FileLocks,
  FileMode,
  FileSystem,
  FolderHandle,
  Random,
} from '../core/ports.ts'

/** How one operation can fail. */
export type FileFailure = 'disk-full' | 'sync-fails' | 'too-many-files'

/** What stops: only the process, or the whole machine. */
export type FileCrash = 'process' | 'power'

type Change =
  | { readonly kind: 'write'; readonly offset: number; readonly bytes: Buffer }
  | { readonly kind: 'truncate'; readonly length: number }

interface SimulatedFile {
  readonly kind: 'file'
  now: Buffer
  onDisk: Buffer
  unsynced: Change[]
  /** Reported by `info`: the number of the file, and of its last change. */
  readonly inode: number
  modified: number
}

type Entry =
  | { readonly kind: 'link'; readonly name: string; readonly node: Node }
  | { readonly kind: 'unlink'; readonly name: string }
  | { readonly kind: 'rename'; readonly from: string; readonly to: string; readonly node: Node }

interface SimulatedFolder {
  readonly kind: 'folder'
  now: Map<string, Node>
  onDisk: Map<string, Node>
  unsynced: Entry[]
}

type Node = SimulatedFile | SimulatedFolder

/** Files that can be torn, lost, refused and damaged. */
export class SimulatedFiles implements FileSystem, FileLocks {
  readonly #random: Random
  readonly #root: SimulatedFolder
  readonly #locked = new Set<string>()
  readonly #failures: FileFailure[] = []
  #operations = 0
  #dieAt = Number.POSITIVE_INFINITY
  #inodes: number

  constructor(random: Random, root: SimulatedFolder = newFolder(), inodes = 0) {
    this.#random = random
    this.#root = root
    this.#inodes = inodes
  }

  /** The number of operations so far. */
  get operations(): number {
    return this.#operations
  }

  /** From this operation on all operations fail, as if the machine had stopped before it. */
  dieAt(operation: number): void {
    this.#dieAt = operation
  }

  /** Returns the files after the crash. This object fails all further operations. */
  crash(kind: FileCrash): SimulatedFiles {
    this.#dieAt = 0
    const keep = () => kind === 'process' || this.#random.next() < 0.5
    const root = this.#surviving(this.#root, keep) as SimulatedFolder
    return new SimulatedFiles(this.#random, root, this.#inodes)
  }

  /** Makes the next operation fail that can fail in this way. */
  failNext(kind: FileFailure): void {
    this.#failures.push(kind)
  }

  /** Flips one bit of a file, also on disk. */
  corrupt(path: string): void {
    const file = this.#node(path)
    if (file?.kind !== 'file' || file.now.length === 0) throw errorOf('ENOENT', path)
    const place = Math.floor(this.#random.next() * file.now.length)
    const bytes = Buffer.from(file.now)
    bytes[place] = (bytes[place] as number) ^ (1 << Math.floor(this.#random.next() * 8))
    file.now = bytes
    file.onDisk = bytes
    file.unsynced = []
    file.modified++
  }

  open(path: string, mode: 'append' | 'create'): Promise<FileHandle>
  open(path: string, mode: FileMode): Promise<FileHandle | undefined>
  async open(path: string, mode: FileMode): Promise<FileHandle | undefined> {
    this.#step()
    this.#mayFail('too-many-files', 'EMFILE', path)
    const { folder, name } = this.#place(path)
    const found = folder?.now.get(name)
    if (found?.kind === 'folder') throw errorOf('EISDIR', path)
    if (found !== undefined && mode === 'create') throw errorOf('EEXIST', path)
    if (found !== undefined) return this.#handle(path, found)
    if (mode === 'read') return undefined
    if (folder === undefined) throw errorOf('ENOENT', path)
    const empty = Buffer.alloc(0)
    const file = this.#file(empty)
    change(folder, { kind: 'link', name, node: file })
    return this.#handle(path, file)
  }

  async info(path: string): Promise<FileInfo | undefined> {
    this.#step()
    const node = this.#node(path)
    return node && infoOf(node)
  }

  async list(path: string): Promise<string[]> {
    this.#step()
    const node = this.#node(path)
    return node?.kind === 'folder' ? [...node.now.keys()].sort() : []
  }

  async createFolder(path: string): Promise<boolean> {
    this.#step()
    const { folder, name } = this.#place(path)
    if (folder === undefined) throw errorOf('ENOENT', path)
    if (folder.now.has(name)) return false
    this.#mayFail('disk-full', 'ENOSPC', path)
    change(folder, { kind: 'link', name, node: newFolder() })
    return true
  }

  async rename(from: string, to: string): Promise<void> {
    this.#step()
    const source = this.#place(from)
    const target = this.#place(to)
    const node = source.folder?.now.get(source.name)
    if (node === undefined || source.folder === undefined) throw errorOf('ENOENT', from)
    if (source.folder !== target.folder) throw errorOf('EXDEV', to)
    change(source.folder, { kind: 'rename', from: source.name, to: target.name, node })
  }

  async remove(path: string): Promise<void> {
    this.#step()
    const { folder, name } = this.#place(path)
    if (folder?.now.has(name)) change(folder, { kind: 'unlink', name })
  }

  async openFolder(path: string): Promise<FolderHandle | undefined> {
    this.#step()
    const folder = this.#node(path)
    if (folder === undefined) return undefined
    if (folder.kind !== 'folder') throw errorOf('ENOTDIR', path)
    // This compares nodes in memory, without a disk operation that could fail.
    return { path, isAt: async (other) => this.#node(other) === folder, close: async () => {} }
  }

  async syncFolder(path: string): Promise<void> {
    this.#step()
    const folder = this.#node(path)
    if (folder?.kind !== 'folder') throw errorOf('ENOENT', path)
    this.#mayFail('sync-fails', 'EIO', path)
    folder.onDisk = new Map(folder.now)
    folder.unsynced = []
  }

  async take(path: string): Promise<FileLock | undefined> {
    this.#step()
    if (this.#locked.has(path)) return undefined
    this.#locked.add(path)
    return { release: async () => void this.#locked.delete(path) }
  }

  #handle(path: string, file: SimulatedFile): FileHandle {
    const write = (bytes: Buffer) => {
      file.unsynced.push({ kind: 'write', offset: file.now.length, bytes })
      file.now = Buffer.concat([file.now, bytes])
      file.modified++
    }
    const append = async (bytes: Uint8Array) => {
      this.#step()
      const kept = Buffer.from(bytes)
      // A full disk may write a part before it fails.
      const part = kept.subarray(0, Math.floor(this.#random.next() * kept.length))
      this.#mayFail('disk-full', 'ENOSPC', path, () => write(part))
      write(kept)
    }
    const sync = async () => {
      this.#step()
      const { unsynced } = file
      file.unsynced = []
      this.#mayFail('sync-fails', 'EIO', path)
      file.onDisk = unsynced.reduce(applied, file.onDisk)
    }
    return {
      append,
      // Two operations, so that a failure can happen between them.
      appendDurably: async (bytes) => {
        await append(bytes)
        await sync()
      },
      read: async (offset, length) => {
        this.#step()
        return Uint8Array.from(file.now.subarray(offset, offset + length))
      },
      info: async () => {
        this.#step()
        return infoOf(file)
      },
      truncate: async (length) => {
        this.#step()
        file.unsynced.push({ kind: 'truncate', length })
        file.now = applied(file.now, { kind: 'truncate', length })
        file.modified++
      },
      sync,
      close: async () => {},
    }
  }

  /** A file or folder after a crash: each unsynced change is kept or lost. */
  #surviving(node: Node, keep: () => boolean): Node {
    if (node.kind === 'folder') {
      const entries = new Map(node.onDisk)
      for (const entry of node.unsynced) if (keep()) enter(entries, entry)
      const now = new Map<string, Node>()
      for (const [name, child] of entries) now.set(name, this.#surviving(child, keep))
      return { kind: 'folder', now, onDisk: new Map(now), unsynced: [] }
    }
    const kept = node.unsynced.filter(() => keep())
    const lost = kept.length < node.unsynced.length
    const bytes = kept.reduce(applied, node.onDisk)
    const torn = lost || (kept.length > 0 && !keep()) ? this.#tear(kept, bytes) : bytes
    return this.#file(torn)
  }

  /**
   * A file with a new inode, also for what is left after a crash, so that it never looks unchanged.
   */
  #file(content: Buffer): SimulatedFile {
    const numbers = { inode: ++this.#inodes, modified: 0 }
    return { kind: 'file', now: content, onDisk: content, unsynced: [], ...numbers }
  }

  /** Cuts the last write that was kept at a random byte. */
  #tear(kept: readonly Change[], bytes: Buffer): Buffer {
    const last = kept[kept.length - 1]
    if (last?.kind !== 'write') return bytes
    return bytes.subarray(
      0,
      last.offset + Math.floor(this.#random.next() * (last.bytes.length + 1)),
    )
  }

  #node(path: string): Node | undefined {
    const { folder, name } = this.#place(path)
    return name === '' ? folder : folder?.now.get(name)
  }

  #place(path: string): { folder: SimulatedFolder | undefined; name: string } {
    const parts = path.split('/').filter((part) => part !== '' && part !== '.')
    const name = parts.pop() ?? ''
    let folder: SimulatedFolder | undefined = this.#root
    for (const part of parts) {
      const next: Node | undefined = folder?.now.get(part)
      folder = next?.kind === 'folder' ? next : undefined
    }
    return { folder, name }
  }

  #step(): void {
    this.#operations++
    if (this.#operations > this.#dieAt) throw new Error('The simulated machine has stopped')
  }

  #mayFail(kind: FileFailure, code: string, path: string, before?: () => void): void {
    const found = this.#failures.indexOf(kind)
    if (found < 0) return
    this.#failures.splice(found, 1)
    before?.()
    throw errorOf(code, path)
  }
}

function newFolder(): SimulatedFolder {
  return { kind: 'folder', now: new Map(), onDisk: new Map(), unsynced: [] }
}

function change(folder: SimulatedFolder, entry: Entry): void {
  folder.unsynced.push(entry)
  enter(folder.now, entry)
}

function enter(entries: Map<string, Node>, entry: Entry): void {
  if (entry.kind === 'link') entries.set(entry.name, entry.node)
  else if (entry.kind === 'unlink') entries.delete(entry.name)
  else {
    entries.delete(entry.from)
    entries.set(entry.to, entry.node)
  }
}

function applied(bytes: Buffer, done: Change): Buffer {
  const length = done.kind === 'write' ? done.offset + done.bytes.length : done.length
  const result = Buffer.alloc(done.kind === 'write' ? Math.max(bytes.length, length) : length)
  bytes.copy(result)
  if (done.kind === 'write') done.bytes.copy(result, done.offset)
  return result
}

function infoOf(node: Node): FileInfo {
  const { size, inode, modified } =
    node.kind === 'file' ? { ...node, size: node.now.length } : { size: 0, inode: 0, modified: 0 }
  const looks = { modifiedAtMs: 0, modified: String(modified), inode: String(inode) }
  return { kind: node.kind, size, ...looks }
}

function errorOf(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code, path })
}
