/**
 * Everything that the engine takes from the outside world. The core itself uses none of it: time,
 * random numbers and ids come in as arguments. Whatever runs the core gets these injected, so that
 * a test or a simulator can own them all.
 */

/** Wall time in whole milliseconds since the epoch, never running backwards. */
export interface Clock {
  /** Measures intervals: never stepped, not even if the wall clock of the machine is. */
  now(): number
  /**
   * The clocks of the machine, from which processes on one SQLite file derive the time that they
   * share. If absent, `now` is the time of a file.
   */
  readonly host?: HostTime
}

/** The clocks of a machine; see `time-base.ts`. */
export interface HostTime {
  /** Identifies the boot; an empty text if the platform has no such identity. */
  readonly boot: string
  /** What the machine says the time is; can be stepped in both directions. */
  wall(): number
  /** Milliseconds of the monotonic clock since the boot; never steps, never runs backwards. */
  elapsed(): number
  /** The uptime less `elapsed`; null if the machine has no uptime that can be trusted. */
  suspended(): number | null
}

/** A timer that can be taken back. */
export interface Timer {
  cancel(): void
}

/** Timers and turns of the event loop. */
export interface Timers {
  /** Calls back once, not before the delay is over; delays of any length are kept. */
  after(delayMs: number, callback: () => void): Timer
  /** Calls back when the event loop turns. */
  defer(callback: () => void): void
}

/** Random numbers from [0, 1). */
export interface Random {
  next(): number
}

/** New ids: UUIDs of version 7, so that they sort by time. */
export interface IdSource {
  next(): string
}

/** The levels of log lines. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Structured logging: plain fields, then a message. Any pino-shaped logger fits. */
export type Logger = {
  readonly [Level in LogLevel]: (fields: Readonly<Record<string, unknown>>, msg: string) => void
}

/** An open file. */
export interface FileHandle {
  /** Writes all bytes at the end of the file. */
  append(bytes: Uint8Array): Promise<void>
  /** The same, and returns when they are on the disk. May stop the event loop for that long. */
  appendDurably(bytes: Uint8Array): Promise<void>
  /** The bytes from a place on; fewer than asked for only where the file ends. */
  read(offset: number, length: number): Promise<Uint8Array>
  info(): Promise<FileInfo>
  truncate(length: number): Promise<void>
  /** Returns when everything written is on the disk. */
  sync(): Promise<void>
  close(): Promise<void>
}

/** What a file system tells of a file without reading it. */
export interface FileInfo {
  readonly size: number
  readonly kind: 'file' | 'folder' | 'link' | 'other'
  readonly modifiedAtMs: number
  /** The same in the finest unit that the file system has. */
  readonly modified: string
  readonly inode: string
}

/**
 * How a file is opened: to read one that is there; to append to one that is there or is made now;
 * or to make one that must not be there yet.
 */
export type FileMode = 'read' | 'append' | 'create'

/** The file operations on which runs stand; a simulator can tear, lose or refuse each of them. */
export interface FileSystem {
  /** Follows no link at its name. To read, nothing where there is no such file. */
  open(path: string, mode: 'append' | 'create'): Promise<FileHandle>
  open(path: string, mode: FileMode): Promise<FileHandle | undefined>
  /** Nothing where there is no such file; links are not followed. */
  info(path: string): Promise<FileInfo | undefined>
  /** The names in a folder, sorted; none where there is no such folder. */
  list(path: string): Promise<string[]>
  /** False where something has that name already. */
  createFolder(path: string): Promise<boolean>
  /** Replaces what has the new name. */
  rename(from: string, to: string): Promise<void>
  /** Does nothing where there is no such file. */
  remove(path: string): Promise<void>
  /** Opens a folder, following no link at its name; nothing where there is none. */
  openFolder(path: string): Promise<FolderHandle | undefined>
  /** Returns when the folder's entries are on the disk. */
  syncFolder(path: string): Promise<void>
}

/** A folder that is open. */
export interface FolderHandle {
  /**
   * The path by which what is in it is reached. Where the system can, it leads to this folder
   * whatever its name leads to by now.
   */
  readonly path: string
  /** Whether a path leads to this folder, and is no link. */
  isAt(path: string): Promise<boolean>
  close(): Promise<void>
}

/** A right that one process has at a time. */
export interface FileLock {
  release(): Promise<void>
}

/** Rights that stand in files. */
export interface FileLocks {
  /**
   * Takes the right of a file, making the file if need be; nothing while another has it. It ends by
   * release or with its process, never by time.
   */
  take(path: string): Promise<FileLock | undefined>
}
