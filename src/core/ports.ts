/**
 * What the engine needs from the outside world. The core uses none of it: time, random numbers and
 * ids are arguments there. Everything else gets these objects injected, so that a test or a
 * simulator can control them.
 */

/** Wall time in whole milliseconds since the epoch. It never runs backwards. */
export interface Clock {
  /** Also measures intervals: it does not step, even if the machine's wall clock is stepped. */
  now(): number
  /**
   * The clocks of the machine, from which the processes on one SQLite file derive their common
   * time. If absent, `now` is the time of the file.
   */
  readonly host?: HostTime
}

/** The clocks of a machine; see `time-base.ts`. */
export interface HostTime {
  /** Identifies the boot. Empty if the platform has no such identity. */
  readonly boot: string
  /** The wall clock of the machine; it can be stepped in both directions. */
  wall(): number
  /** Milliseconds of the monotonic clock since the boot; never steps, never runs backwards. */
  elapsed(): number
  /** The uptime minus `elapsed`. Returns null if the machine has no reliable uptime. */
  suspended(): number | null
}

export interface Timer {
  cancel(): void
}

/** Timers and turns of the event loop. */
export interface Timers {
  /** Calls `callback` once, not before `delayMs` is over. Supports delays of any length. */
  after(delayMs: number, callback: () => void): Timer
  /** Calls `callback` in a later turn of the event loop. */
  defer(callback: () => void): void
}

/** Random numbers from [0, 1). */
export interface Random {
  next(): number
}

/** New ids: UUIDs of version 7, which sort by time. */
export interface IdSource {
  next(): string
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Structured logging: plain fields, then a message. Every logger with pino's signature fits. */
export type Logger = {
  readonly [Level in LogLevel]: (fields: Readonly<Record<string, unknown>>, msg: string) => void
}

export interface FileHandle {
  /** Writes all bytes at the end of the file. */
  append(bytes: Uint8Array): Promise<void>
  /** Like `append`, but resolves when the bytes are on the disk. May block the event loop. */
  appendDurably(bytes: Uint8Array): Promise<void>
  /** Returns the bytes from `offset` on; fewer than `length` only at the end of the file. */
  read(offset: number, length: number): Promise<Uint8Array>
  info(): Promise<FileInfo>
  truncate(length: number): Promise<void>
  /** Resolves when everything written is on the disk. */
  sync(): Promise<void>
  close(): Promise<void>
}

/** What the file system knows about a file without reading it. */
export interface FileInfo {
  readonly size: number
  readonly kind: 'file' | 'folder' | 'link' | 'other'
  readonly modifiedAtMs: number
  /** The modification time in the finest unit that the file system has. */
  readonly modified: string
  readonly inode: string
}

/**
 * - `read`: opens an existing file.
 * - `append`: opens a file to append to it, and creates it if it does not exist.
 * - `create`: creates a file, and fails if the name is taken.
 */
export type FileMode = 'read' | 'append' | 'create'

/** The file operations that runs use. The simulator can tear, lose or refuse each of them. */
export interface FileSystem {
  /** Does not follow a link at `path`. In mode `read`, returns `undefined` if there is no file. */
  open(path: string, mode: 'append' | 'create'): Promise<FileHandle>
  open(path: string, mode: FileMode): Promise<FileHandle | undefined>
  /** Returns `undefined` if there is no such file. Does not follow links. */
  info(path: string): Promise<FileInfo | undefined>
  /** Returns the sorted names in a folder; an empty list if there is no such folder. */
  list(path: string): Promise<string[]>
  /** Returns false if the name is taken. */
  createFolder(path: string): Promise<boolean>
  /** Replaces a file that has the new name. */
  rename(from: string, to: string): Promise<void>
  /** Does nothing if there is no such file. */
  remove(path: string): Promise<void>
  /** Opens a folder without following a link at `path`. Returns `undefined` if there is none. */
  openFolder(path: string): Promise<FolderHandle | undefined>
  /** Resolves when the entries of the folder are on the disk. */
  syncFolder(path: string): Promise<void>
}

export interface FolderHandle {
  /**
   * The path under which its content is reached. If the platform supports it, the path leads to
   * this folder even after the folder was renamed or replaced.
   */
  readonly path: string
  /** Returns true if `path` leads to this folder and is not a link. */
  isAt(path: string): Promise<boolean>
  close(): Promise<void>
}

/** A lock on a file, held by one process at a time. */
export interface FileLock {
  release(): Promise<void>
}

/** Locks on files. */
export interface FileLocks {
  /**
   * Takes the lock on a file, and creates the file if needed. Returns `undefined` if another
   * process holds the lock. The lock ends when it is released or its process ends; it never
   * expires.
   */
  take(path: string): Promise<FileLock | undefined>
}
