/**
 * Heartbeats from a thread of their own, on a connection of their own, so that a handler that
 * blocks the event loop keeps its lease. This file is both ends: the host, which passes on what it
 * is told, and the thread, in which a timer host renews the leases.
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
  | { readonly kind: 'error'; readonly error: Told }

/** An error on its way from the thread: classes do not survive it. */
interface Told {
  readonly name: string
  readonly message: string
  readonly code?: string
  readonly hint?: string
  readonly details?: object
}

function toTold(error: unknown): Told {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error) }
  const { name, message } = error
  const code = codeOf(error)
  const ours = error instanceof PawlError && { hint: error.hint, details: error.details }
  return { name, message, ...(code !== '' && { code }), ...ours }
}

/** Whose leases are renewed, and how. */
interface Renewing {
  readonly storeName: string
  readonly leaseMs: number
  /** How long a call of the store may take; its default if absent. */
  readonly timeoutMs: number | undefined
}

interface ThreadData {
  readonly pawlHeartbeat: Renewing
}

/** Whether the leases of a store can be renewed by a thread: it must be reachable by its name. */
export function canHaveThread(storeName: string): boolean {
  // Sources that are run without being built cannot be loaded by a thread of Node 20.
  return storeName !== 'sqlite::memory:' && import.meta.url.endsWith('.js')
}

/** How long after its end a thread is replaced. */
const RESTART_MS = 500

/**
 * The end in the worker's own thread. A thread that dies is replaced, and told everything anew:
 * also when each lease was renewed last, so that one which no thread could renew is given up, by
 * the next thread or, where threads do not live for long enough, between two of them.
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
    // Nothing of how this process was started is meant for the thread.
    const options = { workerData: this.#data, execArgv: [] }
    const thread = new Worker(new URL(import.meta.url), options)
    thread.on('message', (message: Message) => this.#hear(message))
    thread.on('error', this.#events.onError)
    thread.on('exit', () => this.#replace())
    return thread
  }

  #hear(message: Message): void {
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
    this.#events.onError(new Error('the thread that renews leases has ended; it is replaced'))
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

/** The same name, code and details as it had in the thread. */
function errorOf({ message, ...fields }: Told): Error {
  return Object.assign(new Error(message), fields)
}

function exitOf(thread: Worker): Promise<void> {
  return new Promise((resolve) => thread.on('exit', () => resolve()))
}

/**
 * The store as the thread has it. A thread that begins while the database is away must not end for
 * it: what could not be opened is opened with a later renewal.
 */
class PatientStore implements BeatStore {
  readonly #open: () => Promise<Store>
  #opening: Promise<Store> | undefined

  constructor(name: string, timeoutMs: number | undefined, environment: Environment) {
    // What the thread did to the time of a file would be told to no logger.
    const own = { logger: SILENT, connections: 1, changesTime: false }
    const timed = timeoutMs === undefined ? own : { ...own, timeoutMs }
    const options = { lifecycles: LIFECYCLES, environment, ...timed }
    this.#open = () => openStore(name, options)
    // Whoever needs it is told of a failure.
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

/** The end in the thread. */
function runThread({ storeName, leaseMs, timeoutMs }: Renewing): void {
  const port = parentPort
  if (port === null) return
  const tell = (message: Message) => port.postMessage(message)
  const environment = systemEnvironment()
  const store = new PatientStore(storeName, timeoutMs, environment)
  const host = new TimerHeartbeat(store, environment, leaseMs, {
    onRenewed: (refs, agoMs) => tell({ kind: 'renewed', refs, agoMs }),
    onLost: (beat) => tell({ kind: 'lost', beat }),
    onCancel: (beat) => tell({ kind: 'cancel', beat }),
    onError: (error) => tell({ kind: 'error', error: toTold(error) }),
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
