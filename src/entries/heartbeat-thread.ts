/**
 * `pawl/heartbeat-thread`: the code of the thread in which a worker renews its leases. Nothing is
 * imported from it. A program that is bundled into one file brings it as a file of its own, named
 * heartbeat-thread.js, beside the bundle.
 */
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { PawlError } from '../core/errors.ts'
import { LIFECYCLES } from '../core/lifecycles/index.ts'
import { openStore } from '../engine/open-store.ts'
import type { Place } from '../engine/store-options.ts'
import { SILENT } from '../engine/watching/log.ts'
import { type BeatStore, TimerHeartbeat } from '../engine/worker/heartbeat.ts'
import type {
  ErrorMessage,
  Message,
  Order,
  Renewing,
  ThreadData,
} from '../engine/worker/heartbeat-thread.ts'
import { BoardReader } from '../engine/worker/lease-board.ts'
import { msSince } from '../environment/moments.ts'
import { type Environment, systemEnvironment } from '../environment/system.ts'
import { VERSION } from '../environment/version.ts'
import type { Beat, Heartbeat, Store } from '../stores/contract/store.ts'
import { codeOf } from '../stores/outage.ts'

function toMessage(error: unknown): ErrorMessage {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error) }
  const { name, message } = error
  const code = codeOf(error)
  const ours = error instanceof PawlError && { hint: error.hint, details: error.details }
  return { name, message, ...(code !== '' && { code }), ...ours }
}

/**
 * The thread's connection to the store. If the database cannot be reached when the thread starts,
 * the thread continues, and each renewal tries to open the store again.
 */
class ReopeningStore implements BeatStore {
  readonly #open: () => Promise<Store>
  /** Resolves when the store was opened, or could not be opened. */
  readonly tried: Promise<void>
  #opening: Promise<Store> | undefined

  constructor(place: Place, timeoutMs: number | undefined, environment: Environment) {
    // The thread has no logger, so it must not change the time of a file unnoticed.
    const own = { logger: SILENT, connections: 1, changesTime: false }
    const timed = timeoutMs === undefined ? own : { ...own, timeoutMs }
    const options = { lifecycles: LIFECYCLES, environment, ...timed }
    this.#open = () => openStore(place, options)
    // The next renewal opens the store again and reports the failure.
    this.tried = this.#opened().then(
      () => {},
      () => {},
    )
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

/** The thread knows of a lease before it is due for renewal, which is after a third of it. */
const KNOWN_FROM = 1 / 4
const READ_EVERY = 1 / 12

/** Registers the leases on the board with the host, and removes those that have ended. */
class BoardFollower {
  readonly #reader: BoardReader
  readonly #host: TimerHeartbeat
  readonly #leaseMs: number
  readonly #timer: NodeJS.Timeout

  constructor(board: SharedArrayBuffer, host: TimerHeartbeat, leaseMs: number) {
    this.#reader = new BoardReader(board)
    this.#host = host
    this.#leaseMs = leaseMs
    this.#timer = setInterval(() => this.follow(), Math.max(1, leaseMs * READ_EVERY))
  }

  replace(board: SharedArrayBuffer): void {
    this.#reader.replace(board)
  }

  /** `ageMs`: leases that were renewed less long ago are left for later. */
  follow(ageMs = this.#leaseMs * KNOWN_FROM): void {
    const { ended, begun } = this.#reader.read((renewed) => msSince(renewed) >= ageMs)
    // In this order, because a job that has ended may be held again, by another entry.
    this.#host.untrack(ended)
    const ages = begun.map(({ renewed }) => msSince(renewed))
    if (begun.length > 0) {
      this.#host.track(
        begun.map(({ beat }) => beat),
        ages,
      )
    }
  }

  close(): void {
    clearInterval(this.#timer)
  }
}

/** The code of the thread. */
function runThread({ place, leaseMs, timeoutMs }: Renewing, board: SharedArrayBuffer): void {
  const port = parentPort
  if (port === null) return
  const send = (message: Message) => port.postMessage(message)
  const environment = systemEnvironment()
  const store = new ReopeningStore(place, timeoutMs, environment)
  const host = new TimerHeartbeat(store, environment, leaseMs, {
    // Leases that have ended since the last look are not renewed.
    onBeat: () => follower.follow(),
    onRenewed: (refs, agoMs) => send({ kind: 'renewed', refs, agoMs }),
    onLost: (beat) => send({ kind: 'lost', beat }),
    onCancel: (beat) => send({ kind: 'cancel', beat }),
    onError: (error) => send({ kind: 'error', error: toMessage(error) }),
  })
  const follower = new BoardFollower(board, host, leaseMs)
  void store.tried.then(() => send({ kind: 'ready' }))
  port.on('message', (order: Order) => {
    if (order.kind === 'track') host.track([order.beat], [msSince(order.renewed)])
    else if (order.kind === 'untrack') host.untrack([order.ref])
    else if (order.kind === 'board') follower.replace(order.board)
    else if (order.kind === 'progress') {
      follower.follow(0)
      host.progress(order.ref, order.text)
    } else {
      follower.close()
      void host.close().then(async () => {
        await store.close()
        // Ends this thread alone; Deno has no `port.close`.
        process.exit()
      })
    }
  })
}

const data = workerData as ThreadData | null
if (!isMainThread && data?.pawlHeartbeat !== undefined) {
  if (data.version !== VERSION) {
    throw new Error(`The thread is of pawl ${VERSION}, and the program of ${data.version}`)
  }
  runThread(data.pawlHeartbeat, data.board)
}
