/**
 * Renews leases in a separate thread with its own connection, so that a handler that blocks the
 * event loop keeps its lease. This is the host in the worker's thread, which forwards calls. The
 * code of the thread, in which a `TimerHeartbeat` renews the leases, is an entry of the package
 * (`src/entries/heartbeat-thread.ts`), so that bundled programs can bring it as a file.
 *
 * Leases go to the thread by memory that both share (`lease-board.ts`), which the thread reads
 * before a lease is due for renewal. All else goes by messages.
 */
import { Worker } from 'node:worker_threads'
import { type Moment, momentNow } from '../../environment/moments.ts'
import { VERSION } from '../../environment/version.ts'
import type { Beat, Ref } from '../../stores/contract/store.ts'
import type { Place } from '../store-options.ts'
import type { HeartbeatEvents, HeartbeatHost } from './heartbeat.ts'
import { LeaseBoard } from './lease-board.ts'

export type Order =
  /** A lease that does not fit on the board, renewed at that moment. */
  | { readonly kind: 'track'; readonly beat: Beat; readonly renewed: Moment }
  | { readonly kind: 'untrack'; readonly ref: Ref }
  /** A larger board replaces the one before. */
  | { readonly kind: 'board'; readonly board: SharedArrayBuffer }
  | { readonly kind: 'progress'; readonly ref: Ref; readonly text: string }
  | { readonly kind: 'close' }

export type Message =
  /** The thread has tried to open the store, and can renew leases. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'lost' | 'cancel'; readonly beat: Beat }
  | { readonly kind: 'renewed'; readonly refs: readonly Ref[]; readonly agoMs: number }
  | { readonly kind: 'error'; readonly error: ErrorMessage }

/** An error as sent by the thread: messages between threads do not keep classes. */
export interface ErrorMessage {
  readonly name: string
  readonly message: string
  readonly code?: string
  readonly hint?: string
  readonly details?: object
}

export interface Renewing {
  /** A value that can be passed to a thread. */
  readonly place: Place
  readonly leaseMs: number
  /** How long a call of the store may take; the store's default if absent. */
  readonly timeoutMs: number | undefined
}

export interface ThreadData {
  readonly pawlHeartbeat: Renewing
  /** The leases when the thread starts. */
  readonly board: SharedArrayBuffer
  /** The version of the package that starts the thread. */
  readonly version: string
}

/** The file of the thread in the built package; `url` is that of a module in this folder. */
export function threadFileBy(url: string): URL {
  return new URL('../../entries/heartbeat-thread.js', url)
}

interface Tracked {
  readonly beat: Beat
  /** Its entry on the board; undefined if it does not fit there. */
  readonly entry: number | undefined
  renewed: Moment
}

/** The delay before an ended thread is replaced. */
const RESTART_MS = 500
/** How long a worker waits for its thread. After that it works without, until the thread starts. */
const READY_MAX_MS = 10_000

/**
 * The host in the worker's thread. If the thread ends, it is replaced, and the new one finds all
 * leases with the times of their last renewals. So a lease that no thread could renew is reported
 * as lost: by the new thread, or here before each start if threads keep ending early.
 */
export class ThreadHeartbeat implements HeartbeatHost {
  readonly #renewing: Renewing
  readonly #events: HeartbeatEvents
  /** The file of the thread's code. */
  readonly #file: URL
  readonly #tracked = new Map<Ref, Tracked>()
  readonly #board: LeaseBoard
  #thread: Worker
  #exited: Promise<void>
  #isClosing = false
  #isReady = false
  readonly #readyTimer: NodeJS.Timeout

  constructor(renewing: Renewing, events: HeartbeatEvents, file = threadFileBy(import.meta.url)) {
    this.#renewing = renewing
    this.#file = file
    this.#events = events
    this.#board = new LeaseBoard((board) => this.#order({ kind: 'board', board }))
    this.#thread = this.#start()
    this.#exited = exitOf(this.#thread)
    this.#readyTimer = setTimeout(() => this.#becomeReady(), READY_MAX_MS)
  }

  get isReady(): boolean {
    return this.#isReady
  }

  track(beats: readonly Beat[]): void {
    const renewed = momentNow()
    for (const beat of beats) {
      this.#untrackOne(beat.ref)
      const entry = this.#board.put(beat, renewed)
      if (entry === undefined) this.#order({ kind: 'track', beat, renewed })
      this.#tracked.set(beat.ref, { beat, entry, renewed })
    }
  }

  untrack(refs: readonly Ref[]): void {
    for (const ref of refs) this.#untrackOne(ref)
  }

  #untrackOne(ref: Ref): void {
    const tracked = this.#tracked.get(ref)
    if (tracked === undefined) return
    this.#tracked.delete(ref)
    if (tracked.entry === undefined) this.#order({ kind: 'untrack', ref })
    else this.#board.clear(tracked.entry)
  }

  progress(ref: Ref, text: string): void {
    this.#order({ kind: 'progress', ref, text })
  }

  async close(): Promise<void> {
    this.#isClosing = true
    clearTimeout(this.#readyTimer)
    this.#order({ kind: 'close' })
    await this.#exited
  }

  #start(): Worker {
    // Options of the Node command line must not apply to the thread.
    const workerData: ThreadData = {
      pawlHeartbeat: this.#renewing,
      board: this.#board.buffer,
      version: VERSION,
    }
    const options = { workerData, execArgv: [] }
    const thread = new Worker(this.#file, options)
    thread.on('message', (message: Message) => this.#receive(message))
    thread.on('error', this.#events.onError)
    thread.on('exit', () => this.#replace())
    return thread
  }

  #receive(message: Message): void {
    if (message.kind === 'ready') this.#becomeReady()
    else if (message.kind === 'error') this.#events.onError(errorOf(message.error))
    else if (message.kind === 'lost') this.#events.onLost(message.beat)
    else if (message.kind === 'renewed') this.#noteRenewed(message.refs, message.agoMs)
    else this.#events.onCancel(message.beat)
  }

  #becomeReady(): void {
    if (this.#isReady) return
    this.#isReady = true
    clearTimeout(this.#readyTimer)
    this.#events.onReady?.()
  }

  #noteRenewed(refs: readonly Ref[], agoMs: number): void {
    const now = momentNow()
    const renewed = { ...now, elapsedMs: now.elapsedMs - agoMs }
    for (const ref of refs) {
      const tracked = this.#tracked.get(ref)
      if (tracked === undefined || tracked.renewed.elapsedMs > renewed.elapsedMs) continue
      tracked.renewed = renewed
      if (tracked.entry !== undefined) this.#board.renew(tracked.entry, renewed)
    }
  }

  #replace(): void {
    // A thread that cannot start must not keep the worker from jobs with short handlers.
    this.#becomeReady()
    if (this.#isClosing) return
    this.#events.onError(new Error('The thread that renews leases has ended; starting another'))
    setTimeout(() => {
      if (this.#isClosing) return
      this.#giveUp()
      this.#thread = this.#start()
      this.#exited = exitOf(this.#thread)
      for (const { beat, entry, renewed } of this.#tracked.values()) {
        if (entry === undefined) this.#order({ kind: 'track', beat, renewed })
      }
    }, RESTART_MS)
  }

  #giveUp(): void {
    const before = momentNow().elapsedMs - this.#renewing.leaseMs
    for (const { beat, renewed } of [...this.#tracked.values()]) {
      if (renewed.elapsedMs > before) continue
      this.#untrackOne(beat.ref)
      this.#events.onLost(beat)
    }
  }

  #order(order: Order): void {
    this.#thread.postMessage(order)
  }
}

/** Restores the name, code and details of the error. */
function errorOf({ message, ...fields }: ErrorMessage): Error {
  return Object.assign(new Error(message), fields)
}

function exitOf(thread: Worker): Promise<void> {
  return new Promise((resolve) => thread.on('exit', () => resolve()))
}
