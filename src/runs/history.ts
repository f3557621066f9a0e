/** What the events of a run say about when and where its work was done. */
import type { RunEvent } from '../core/run/events.ts'

/** A state in which the run may be picked up, and the event by which it came there. */
interface StablePlace {
  readonly state: string
  readonly seq: number
}

/** When something was last done, and in which state. */
export interface Place {
  readonly seq: number
  readonly state: string
}

/** What a log says of its work. */
export interface RunHistory {
  /** The stable states visited, as in the run's own trail, with their events. */
  readonly trail: readonly StablePlace[]
  /** Where each work item was last started. */
  readonly items: ReadonlyMap<string, Place>
  /** Where each artifact was last written outside of any item. */
  readonly written: ReadonlyMap<string, Place>
  /** What the node of each state has written by itself, by artifact and state: all contents. */
  readonly nodeWrites: ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>
  /** The last event of each state that wrote an artifact. */
  readonly lastWrites: ReadonlyMap<string, number>
  /** What each item wrote when it last finished, whoever has replaced it since then. */
  readonly outputs: ReadonlyMap<string, ReadonlySet<string>>
}

/** Takes all of it from the events, in order; give its `note` to whoever reads the log. */
export class HistoryNotes implements RunHistory {
  readonly items = new Map<string, Place>()
  readonly written = new Map<string, Place>()
  readonly nodeWrites = new Map<string, Map<string, Set<string>>>()
  readonly lastWrites = new Map<string, number>()
  readonly outputs = new Map<string, ReadonlySet<string>>()
  readonly #writing = new Map<string, Set<string>>()
  trail: StablePlace[] = []
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
        const end = this.trail.findLastIndex((place) => place.state === this.#state)
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
        const place = { seq, state: this.#state }
        this.lastWrites.set(this.#state, seq)
        if (work_item === null) {
          this.written.set(name, place)
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
