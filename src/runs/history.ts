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
  readonly traceId: string
  /** The stable states visited, as in the run's own trail, with their events. */
  readonly trail: readonly StablePlace[]
  /** Where each work item was last started. */
  readonly items: ReadonlyMap<string, Place>
  /** Where each artifact was last written outside of any item. */
  readonly written: ReadonlyMap<string, Place>
}

/** Reads all of it from the events, in order. */
export async function historyOf(events: AsyncIterable<RunEvent>): Promise<RunHistory> {
  const items = new Map<string, Place>()
  const written = new Map<string, Place>()
  let [trail, traceId, state]: [StablePlace[], string, string] = [[], '', '']
  for await (const event of events) {
    const { seq } = event
    switch (event.type) {
      case 'RUN_CREATED':
        traceId = event.trace_id
        state = event.data.state
        if (event.data.stable) trail.push({ state, seq })
        break
      case 'RUN_STATE_CHANGED':
        state = event.data.to_state
        if (event.data.stable) trail.push({ state, seq })
        break
      case 'RESUME_REWIND': {
        state = event.data.to_state
        const end = trail.findLastIndex((place) => place.state === state)
        trail = trail.slice(0, end + 1)
        break
      }
      case 'WORK_ITEM_STARTED':
        items.set(event.data.key, { seq, state })
        break
      case 'ARTIFACT_WRITTEN':
        if (event.data.work_item === null) written.set(event.data.name, { seq, state })
        else written.delete(event.data.name)
    }
  }
  return { traceId, trail, items, written }
}
