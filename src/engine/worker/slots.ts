/**
 * The state of each slot in the worker-loop machine (R3). A slot with a job has its own state. All
 * other slots share the state of the claiming loop. Every move is looked up in the machine, so a
 * slot only shows states that it reached along edges.
 */
import { move } from '../../core/machine/move.ts'
import { workerMachine } from '../../core/worker.ts'

type MachineOf<M> = M extends { readonly byTarget: ReadonlyMap<infer S, unknown> } ? S : never
type TriggerOf<M> = M extends {
  readonly byTrigger: ReadonlyMap<unknown, ReadonlyMap<infer T, unknown>>
}
  ? T
  : never

/** A state of the worker machine. */
export type WorkerState = MachineOf<typeof workerMachine> & string
/** A trigger of the worker machine. */
export type WorkerTrigger = TriggerOf<typeof workerMachine> & string

/** A move of one slot, or of all slots without a job ('idle'). */
export interface SlotMove {
  readonly slot: number | 'idle'
  readonly from: WorkerState
  readonly to: WorkerState
  readonly on: WorkerTrigger
}

export class Slots {
  /** The states of slots with jobs; undefined for free slots, null for closed ones. */
  readonly #own: (WorkerState | undefined | null)[]
  readonly #observe: ((move: SlotMove) => void) | undefined
  #shared: WorkerState = 'Startup'
  /** How many slots have no job and are not claiming. */
  #free: number
  /** No slot before this one is free. */
  #firstFree = 0
  /** The slot that has found a job and waits for its lease. */
  #claiming: number | undefined

  constructor(count: number, observe?: (move: SlotMove) => void) {
    this.#own = Array.from({ length: count }, () => undefined)
    this.#free = count
    this.#observe = observe
  }

  /** The state of the claiming loop and of every slot without a job. */
  get shared(): WorkerState {
    return this.#shared
  }

  get states(): readonly WorkerState[] {
    return this.#own.filter((own) => own !== null).map((own) => own ?? this.#shared)
  }

  /** How many slots have no job, including one that is claiming. */
  get free(): number {
    return this.#free + (this.#claiming === undefined ? 0 : 1)
  }

  /** Moves the claiming loop and every slot without a job. */
  moveShared(on: WorkerTrigger): void {
    const from = this.#shared
    this.#shared = targetOf(from, on)
    this.#observe?.({ slot: 'idle', from, to: this.#shared, on })
  }

  /** A job was found: one free slot moves to the claiming state. */
  find(): void {
    if (this.#claiming !== undefined) return
    const slot = this.#own.indexOf(undefined, this.#firstFree)
    if (slot < 0) return
    this.#firstFree = slot + 1
    this.#free--
    this.#own[slot] = this.#shared
    this.moveOne(slot, 'task-found')
    this.#claiming = slot
  }

  /**
   * The found job was not claimed: another worker was faster or it is not for this worker
   * ('claim-lost'), or the store failed ('exception').
   */
  miss(on: 'claim-lost' | 'exception'): void {
    const slot = this.#claiming
    if (slot === undefined) return
    this.moveOne(slot, on)
    this.#claiming = undefined
    this.#setFree(slot)
  }

  /** Assigns a claimed job to the slot that found it, or to a free one. Returns the slot. */
  take(): number {
    this.find()
    const slot = this.#claiming
    if (slot === undefined) throw new Error('No slot is free')
    this.#claiming = undefined
    this.moveOne(slot, 'lease-acquired')
    return slot
  }

  /** Moves a slot that has a job. */
  moveOne(slot: number, on: WorkerTrigger): void {
    const from = this.#own[slot]
    if (from === undefined || from === null) throw new Error(`Slot ${slot} has no job`)
    const to = targetOf(from, on)
    this.#own[slot] = to
    this.#observe?.({ slot, from, to, on })
  }

  /** Frees a slot whose job is reported; it shares the state of the claiming loop again. */
  release(slot: number): void {
    this.moveOne(slot, 'reported')
    if (this.#shared === 'Draining') this.moveOne(slot, 'drain')
    this.#setFree(slot)
  }

  open(): void {
    const closed = this.#own.indexOf(null)
    this.#setFree(closed < 0 ? this.#own.length : closed)
  }

  /** Removes a slot whose job is reported. */
  close(slot: number): void {
    this.release(slot)
    this.#own[slot] = null
    this.#free--
  }

  #setFree(slot: number): void {
    this.#own[slot] = undefined
    this.#free++
    this.#firstFree = Math.min(this.#firstFree, slot)
  }
}

function targetOf(from: WorkerState, on: WorkerTrigger): WorkerState {
  const known = workerMachine.byTrigger.get(from)?.get(on)
  if (known !== undefined) return known.to
  const found = move(workerMachine, from, { on })
  if (found.kind === 'invalid') throw found.error
  if (found.kind === 'same') return from
  return found.edge.to
}
