/**
 * Renews leases in a separate thread with its own connection, so that a handler that blocks the
 * event loop keeps its lease. This file contains both ends: the host in the worker's thread, which
 * forwards calls, and the code of the thread, in which a `TimerHeartbeat` renews the leases.
 */
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { PawlError } from '../../core/errors.ts'
import { LIFECYCLES } from '../../core/lifecycles/index.ts'
import { type Environment, systemEnvironment } from '../../environment/system.ts'
import { codeOf } from '../../stores/outage.ts'
import type { Beat, Heartbeat, Ref, Store } from '../../stores/store.ts'
import { openStore } from '../open-store.ts'
import { SILENT } from '../watching/log.ts'
import {
  type BeatStore,
  type HeartbeatEvents,
  type HeartbeatHost,
  TimerHeartbeat,
} from './heartbeat.ts'

type Order =
  | { readonly kind: 'track'; readonly beats: readonly Beat[]; readonly agesMs: readonly number[] }
  | { readonly kind: 'untrack'; readonly refs: readonly Ref[] }
  | { readonly kind: 'progress'; readonly ref: Ref; readonly text: string }
  | { readonly kind: 'close' }

type Message =
  | { readonly kind: 'lost' | 'cancel'; readonly beat: Beat }
  | { readonly kind: 'renewed'; readonly refs: readonly Ref[]; readonly agoMs: number }
  | { readonly kind: 'error'; readonly error: ErrorMessage }

/** An error as sent by the thread: messages between threads do not keep classes. */
interface ErrorMessage {
  readonly name: string
  readonly message: string
  readonly code?: string
  readonly hint?: string
  readonly details?: object
}

function toMessage(error: unknown): ErrorMessage {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error) }
  const { name, message } = error
  const code = codeOf(error)
  const ours = error instanceof PawlError && { hint: error.hint, details: error.details }
  return { name, message, ...(code !== '' && { code }), ...ours }
}

interface Renewing {
  readonly storeName: string
  readonly leaseMs: number
  /** How long a call of the store may take; the store's default if absent. */
  readonly timeoutMs: number | undefined
}

interface ThreadData {
  readonly pawlHeartbeat: Renewing
}

/** Whether a thread can renew the leases: it must be able to open the store by its name. */
export function canHaveThread(storeName: string): boolean {
  // A thread of Node 20 cannot load TypeScript sources.
  return storeName !== 'sqlite::memory:' && import.meta.url.endsWith('.js')
}

/** The delay before an ended thread is replaced. */
const RESTART_MS = 500

/**
 * The host in the worker's thread. If the thread ends, it is replaced, and the new one receives all
 * leases with the times of their last renewals. So a lease that no thread could renew is reported
 * as lost: by the new thread, or here before each start if threads keep ending early.
 */
export class ThreadHeartbeat implements HeartbeatHost {
  readonly #data: ThreadData
  readonly #events: HeartbeatEvents
  readonly #tracked = new Map<Ref, { readonly beat: Beat; renewedAt: number }>()
  #thread: Worker
  #exited: Promise<void>
  #isClosing = false

  constructor(renewing: Renewing, events: HeartbeatEvents) {
    this.#data = { pawlHeartbeat: renewing }
    this.#events = events
    this.#thread = this.#start()
    this.#exited = exitOf(this.#thread)
  }

  track(beats: readonly Beat[]): void {
    const renewedAt = performance.now()
    for (const beat of beats) this.#tracked.set(beat.ref, { beat, renewedAt })
    this.#order({ kind: 'track', beats, agesMs: [] })
  }

  untrack(refs: readonly Ref[]): void {
    for (const ref of refs) this.#tracked.delete(ref)
    this.#order({ kind: 'untrack', refs })
  }

  progress(ref: Ref, text: string): void {
    this.#order({ kind: 'progress', ref, text })
  }

  async close(): Promise<void> {
    this.#isClosing = true
    this.#order({ kind: 'close' })
    await this.#exited
  }

  #start(): Worker {
    // Options of the Node command line must not apply to the thread.
    const options = { workerData: this.#data, execArgv: [] }
    const thread = new Worker(new URL(import.meta.url), options)
    thread.on('message', (message: Message) => this.#receive(message))
    thread.on('error', this.#events.onError)
    thread.on('exit', () => this.#replace())
    return thread
  }

  #receive(message: Message): void {
    if (message.kind === 'error') this.#events.onError(errorOf(message.error))
    else if (message.kind === 'lost') this.#events.onLost(message.beat)
    else if (message.kind === 'renewed') this.#noteRenewed(message.refs, message.agoMs)
    else this.#events.onCancel(message.beat)
  }

  #noteRenewed(refs: readonly Ref[], agoMs: number): void {
    const renewedAt = performance.now() - agoMs
    for (const ref of refs) {
      const tracked = this.#tracked.get(ref)
      if (tracked !== undefined) tracked.renewedAt = Math.max(tracked.renewedAt, renewedAt)
    }
  }

  #replace(): void {
    if (this.#isClosing) return
    this.#events.onError(new Error('The thread that renews leases has ended; starting another'))
    setTimeout(() => {
      if (this.#isClosing) return
      this.#thread = this.#start()
      this.#exited = exitOf(this.#thread)
      this.#giveUp()
      const all = [...this.#tracked.values()]
      const now = performance.now()
      const agesMs = all.map(({ renewedAt }) => Math.ceil(now - renewedAt))
      this.#order({ kind: 'track', beats: all.map(({ beat }) => beat), agesMs })
    }, RESTART_MS)
  }

  #giveUp(): void {
    const before = performance.now() - this.#data.pawlHeartbeat.leaseMs
    for (const { beat, renewedAt } of [...this.#tracked.values()]) {
      if (renewedAt > before) continue
      this.#tracked.delete(beat.ref)
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

/**
 * The thread's connection to the store. If the database cannot be reached when the thread starts,
 * the thread continues, and each renewal tries to open the store again.
 */
class ReopeningStore implements BeatStore {
  readonly #open: () => Promise<Store>
  #opening: Promise<Store> | undefined

  constructor(name: string, timeoutMs: number | undefined, environment: Environment) {
    // The thread has no logger, so it must not change the time of a file unnoticed.
    const own = { logger: SILENT, connections: 1, changesTime: false }
    const timed = timeoutMs === undefined ? own : { ...own, timeoutMs }
    const options = { lifecycles: LIFECYCLES, environment, ...timed }
    this.#open = () => openStore(name, options)
    // The next renewal opens the store again and reports the failure.
    this.#opened().catch(() => {})
  }

  async heartbeat(beats: readonly Beat[], leaseMs: number): Promise<Heartbeat> {
    return (await this.#opened()).heartbeat(beats, leaseMs)
  }

  async close(): Promise<void> {
    const store = await this.#opening?.catch(() => undefined)
    await store?.close()
  }

  async #opened(): Promise<Store> {
    this.#opening ??= this.#open()
    try {
      return await this.#opening
    } catch (error) {
      this.#opening = undefined
      throw error
    }
  }
}

/** The code of the thread. */
function runThread({ storeName, leaseMs, timeoutMs }: Renewing): void {
  const port = parentPort
  if (port === null) return
  const send = (message: Message) => port.postMessage(message)
  const environment = systemEnvironment()
  const store = new ReopeningStore(storeName, timeoutMs, environment)
  const host = new TimerHeartbeat(store, environment, leaseMs, {
    onRenewed: (refs, agoMs) => send({ kind: 'renewed', refs, agoMs }),
    onLost: (beat) => send({ kind: 'lost', beat }),
    onCancel: (beat) => send({ kind: 'cancel', beat }),
    onError: (error) => send({ kind: 'error', error: toMessage(error) }),
  })
  port.on('message', (order: Order) => {
    if (order.kind === 'track') host.track(order.beats, order.agesMs)
    else if (order.kind === 'untrack') host.untrack(order.refs)
    else if (order.kind === 'progress') host.progress(order.ref, order.text)
    else {
      void host.close().then(async () => {
        await store.close()
        port.close()
      })
    }
  })
}

const data = workerData as ThreadData | null
if (!isMainThread && data?.pawlHeartbeat !== undefined) runThread(data.pawlHeartbeat)
