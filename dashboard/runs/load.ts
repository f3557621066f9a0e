/** A run with its events, and the same run after any of them. */
import type { Change } from '../../src/audit/diff.ts'
import type { RunEvent } from '../../src/core/run/events.ts'
import type { Run } from '../../src/core/run/run.ts'
import { type Answer, call } from '../api/client.ts'

interface Holder {
  readonly host: string
  readonly pid: number
  readonly since: string
}

export interface RunData {
  readonly run: Run
  readonly holder: Holder | null
  readonly cancelRequest: { readonly reason: string } | null
  readonly damage: { readonly line: number; readonly why: string } | null
  /** In order; the last ones if the run has very many. */
  readonly events: readonly RunEvent[]
}

/** A run as it was after one of its events. */
export interface RunMoment {
  readonly at: number
  readonly isNow: boolean
  readonly run: Run
  /** What the event changed. */
  readonly changes: readonly Change[]
}

/** The events that a page holds. Visits of a longer run are those of its last events. */
const EVENTS_MAX = 5000
const PAGE = 1000

/** Events never change, so only new ones are asked for. The events of one run are kept. */
let kept: { readonly id: string; readonly events: readonly RunEvent[] } = { id: '', events: [] }

export async function loadRun(id: string, signal: AbortSignal): Promise<RunData> {
  const shown = await call('showRun', { params: { id } }, signal)
  const run = shown.run as unknown as Run
  const events = await loadEvents(id, run.last_seq, signal)
  return { ...(shown as unknown as Omit<RunData, 'events'>), run, events }
}

async function loadEvents(
  id: string,
  last: number,
  signal: AbortSignal,
): Promise<readonly RunEvent[]> {
  const first = Math.max(1, last - EVENTS_MAX + 1)
  const events = kept.id === id ? kept.events.filter(({ seq }) => seq >= first) : []
  while ((events.at(-1)?.seq ?? first - 1) < last) {
    const query = { from: (events.at(-1)?.seq ?? first - 1) + 1, limit: PAGE }
    const { items } = await call('listRunEvents', { params: { id }, query }, signal)
    if (items.length === 0) break
    events.push(...(items as unknown as RunEvent[]))
  }
  kept = { id, events }
  return events
}

/** The run after an event, and what that event changed. */
export async function loadMoment(id: string, at: number, signal: AbortSignal) {
  const params = { id, seq: String(at) }
  const { run } = await call('showRunAt', { params }, signal)
  const changes = at > 1 ? await changesAt(id, at, signal) : []
  return { at, run: run as unknown as Run, changes }
}

async function changesAt(id: string, at: number, signal: AbortSignal): Promise<readonly Change[]> {
  const query = { from: at - 1, to: at }
  const { changes }: Answer<'diffRun'> = await call('diffRun', { params: { id }, query }, signal)
  // The number of the last event changes with every event.
  return (changes as unknown as Change[]).filter(({ path }) => path[0] !== 'last_seq')
}
