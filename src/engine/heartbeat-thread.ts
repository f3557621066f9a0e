/**
 * Heartbeats from a thread of their own, on a connection of their own, so that a handler that
 * blocks the event loop keeps its lease. This file is both ends: the host, which passes on what it
 * is told, and the thread, in which a timer host renews the leases.
 */
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { LIFECYCLES } from '../core/lifecycles/index.ts'
import { systemEnvironment } from '../environment/system.ts'
import type { Beat, Ref } from '../stores/store.ts'
import { type HeartbeatEvents, type HeartbeatHost, TimerHeartbeat } from './heartbeat.ts'
import { SILENT } from './log.ts'
import { openStore } from './open-store.ts'

type Order =
  | { readonly kind: 'track'; readonly beats: readonly Beat[] }
  | { readonly kind: 'untrack'; readonly refs: readonly Ref[] }
  | { readonly kind: 'progress'; readonly ref: Ref; readonly text: string }
  | { readonly kind: 'close' }

type Message =
  | { readonly kind: 'lost' | 'cancel'; readonly beat: Beat }
  | { readonly kind: 'error'; readonly error: string }

interface ThreadData {
  readonly pawlHeartbeat: { readonly storeName: string; readonly leaseMs: number }
}

/** Whether the leases of a store can be renewed by a thread: it must be reachable by its name. */
export function canHaveThread(storeName: string): boolean {
  // Sources that are run without being built cannot be loaded by a thread of Node 20.
  return storeName !== 'sqlite::memory:' && import.meta.url.endsWith('.js')
}

/** How long after its end a thread is replaced. */
const RESTART_MS = 500

/** The end in the worker's own thread. A thread that dies is replaced, and told everything anew. */
export class ThreadHeartbeat implements HeartbeatHost {
  readonly #data: ThreadData
  readonly #events: HeartbeatEvents
  readonly #tracked = new Map<Ref, Beat>()
  #thread: Worker
  #exited: Promise<void>
  #isClosing = false

  constructor(storeName: string, leaseMs: number, events: HeartbeatEvents) {
    this.#data = { pawlHeartbeat: { storeName, leaseMs } }
    this.#events = events
    this.#thread = this.#start()
    this.#exited = exitOf(this.#thread)
  }

  track(beats: readonly Beat[]): void {
    for (const beat of beats) this.#tracked.set(beat.ref, beat)
    this.#order({ kind: 'track', beats })
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
    if (message.kind === 'error') this.#events.onError(new Error(message.error))
    else if (message.kind === 'lost') this.#events.onLost(message.beat)
    else this.#events.onCancel(message.beat)
  }

  #replace(): void {
    if (this.#isClosing) return
    this.#events.onError(new Error('the thread that renews leases has ended; it is replaced'))
    setTimeout(() => {
      if (this.#isClosing) return
      this.#thread = this.#start()
      this.#exited = exitOf(this.#thread)
      this.#order({ kind: 'track', beats: [...this.#tracked.values()] })
    }, RESTART_MS)
  }

  #order(order: Order): void {
    this.#thread.postMessage(order)
  }
}

function exitOf(thread: Worker): Promise<void> {
  return new Promise((resolve) => thread.on('exit', () => resolve()))
}

/** The end in the thread. */
async function runThread({ storeName, leaseMs }: ThreadData['pawlHeartbeat']): Promise<void> {
  const port = parentPort
  if (port === null) return
  const tell = (message: Message) => port.postMessage(message)
  const environment = systemEnvironment()
  const options = { lifecycles: LIFECYCLES, environment, logger: SILENT, connections: 1 }
  const store = await openStore(storeName, options)
  const host = new TimerHeartbeat(store, environment, leaseMs, {
    onLost: (beat) => tell({ kind: 'lost', beat }),
    onCancel: (beat) => tell({ kind: 'cancel', beat }),
    onError: (error) => tell({ kind: 'error', error: String(error) }),
  })
  port.on('message', (order: Order) => {
    if (order.kind === 'track') host.track(order.beats)
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
if (!isMainThread && data?.pawlHeartbeat !== undefined) await runThread(data.pawlHeartbeat)
