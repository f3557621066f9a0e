/** When and in which state the work of a run was done, taken from its events. */
import type { RunEvent } from '../core/run/events.ts'

/** A stable state, and the event that entered it. */
interface StablePosition {
  readonly state: string
  readonly seq: number
}

/** A position in the log, and the state of the run there. */
export interface Position {
  readonly seq: number
  readonly state: string
}

export interface RunHistory {
  /** The stable states that were visited, as in `run.stable_trail`, with their events. */
  readonly trail: readonly StablePosition[]
  /** Where each work item was last started. */
  readonly items: ReadonlyMap<string, Position>
  /** Where each artifact was last written outside of any item. */
  readonly written: ReadonlyMap<string, Position>
  /** The hashes of all contents that nodes wrote outside of items, by artifact and state. */
  readonly nodeWrites: ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>
  /** The last event that wrote an artifact, by state. */
  readonly lastWrites: ReadonlyMap<string, number>
  /** The artifacts that each item wrote when it last finished, even if replaced since. */
  readonly outputs: ReadonlyMap<string, ReadonlySet<string>>
}

/** Collects the history. `note` must receive all events in order. */
export class HistoryNotes implements RunHistory {
  readonly items = new Map<string, Position>()
  readonly written = new Map<string, Position>()
  readonly nodeWrites = new Map<string, Map<string, Set<string>>>()
  readonly lastWrites = new Map<string, number>()
  readonly outputs = new Map<string, ReadonlySet<string>>()
  readonly #writing = new Map<string, Set<string>>()
  trail: StablePosition[] = []
  #state = ''

  readonly note = (event: RunEvent): void => {
    const { seq } = event
    switch (event.type) {
      case 'RUN_CREATED':
        this.#enter(event.data.state, event.data.stable, seq)
        break
      case 'RUN_STATE_CHANGED':
        this.#enter(event.data.to_state, event.data.stable, seq)
        break
      case 'RESUME_REWIND': {
        this.#state = event.data.to_state
        const end = this.trail.findLastIndex((position) => position.state === this.#state)
        this.trail = this.trail.slice(0, end + 1)
        break
      }
      case 'WORK_ITEM_STARTED':
        this.items.set(event.data.key, { seq, state: this.#state })
        this.#writing.set(event.data.key, new Set())
        break
      case 'WORK_ITEM_FINISHED':
        this.outputs.set(event.data.key, this.#writing.get(event.data.key) ?? new Set())
        this.#writing.delete(event.data.key)
        break
      case 'ARTIFACT_WRITTEN': {
        const { name, work_item, sha256 } = event.data
        const position = { seq, state: this.#state }
        this.lastWrites.set(this.#state, seq)
        if (work_item === null) {
          this.written.set(name, position)
          this.#noteNodeWrite(name, sha256)
        } else {
          this.written.delete(name)
          this.#writing.get(work_item)?.add(name)
        }
      }
    }
  }

  #noteNodeWrite(name: string, sha256: string): void {
    const byState = this.nodeWrites.get(name) ?? new Map<string, Set<string>>()
    const contents = byState.get(this.#state) ?? new Set<string>()
    this.nodeWrites.set(name, byState.set(this.#state, contents.add(sha256)))
  }

  #enter(state: string, stable: true | undefined, seq: number): void {
    this.#state = state
    if (stable) this.trail.push({ state, seq })
  }
}
