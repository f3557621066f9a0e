/**
 * Heartbeats from a thread of their own, on a connection of their own, so that a handler that
 * blocks the event loop keeps its lease. This file is both ends: the host, which passes on what it
 * is told, and the thread, in which a timer host renews the leases.
 */
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { LIFECYCLES } from '../core/lifecycles/index.ts'
import { systemEnvironment } from '../environment/system.ts'
import type { Beat } from '../stores/store.ts'
import { type HeartbeatEvents, type HeartbeatHost, TimerHeartbeat } from './heartbeat.ts'
import { SILENT } from './log.ts'
import { openStore } from './open-store.ts'

type Order =
  | { readonly kind: 'track'; readonly beats: readonly Beat[] }
  | { readonly kind: 'untrack'; readonly refs: readonly number[] }
  | { readonly kind: 'progress'; readonly ref: number; readonly text: string }
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

/** The end in the worker's own thread. */
export class ThreadHeartbeat implements HeartbeatHost {
  readonly #thread: Worker
  readonly #exited: Promise<void>

  constructor(storeName: string, leaseMs: number, events: HeartbeatEvents) {
    const workerData: ThreadData = { pawlHeartbeat: { storeName, leaseMs } }
    this.#thread = new Worker(new URL(import.meta.url), { workerData })
    this.#thread.on('message', (message: Message) => {
      if (message.kind === 'error') events.onError(new Error(message.error))
      else if (message.kind === 'lost') events.onLost(message.beat)
      else events.onCancel(message.beat)
    })
    this.#thread.on('error', events.onError)
    this.#exited = new Promise((resolve) => this.#thread.on('exit', () => resolve()))
  }

  track(beats: readonly Beat[]): void {
    this.#order({ kind: 'track', beats })
  }

  untrack(refs: readonly number[]): void {
    this.#order({ kind: 'untrack', refs })
  }

  progress(ref: number, text: string): void {
    this.#order({ kind: 'progress', ref, text })
  }

  async close(): Promise<void> {
    this.#order({ kind: 'close' })
    await this.#exited
  }

  #order(order: Order): void {
    this.#thread.postMessage(order)
  }
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
