/** How the states of flows and the statuses of their nodes are shown. Pure. */
import type { FlowBox } from '../../src/audit/flow-folding.ts'
import type { NodeStatus } from '../../src/audit/flow-points.ts'
import type { Flow, FlowProgress } from '../api/operations.ts'
import { count, counted } from '../format.ts'
import type { Tone } from '../machine-data.ts'

const FLOW_TONES: Readonly<Record<Flow['state'], Tone>> = {
  open: 'running',
  attention: 'parked',
  done: 'succeeded',
}

export const NODE_TONES: Readonly<Record<NodeStatus, Tone>> = {
  later: 'idle',
  waits: 'waiting',
  scheduled: 'scheduled',
  ready: 'ready',
  running: 'running',
  parked: 'parked',
  succeeded: 'succeeded',
  failed: 'failed',
  cancelled: 'cancelled',
}

/** What is most urgent decides the sign of a box. */
const URGENT: readonly NodeStatus[] = [
  ...(['parked', 'failed', 'running', 'ready', 'scheduled', 'waits'] as const),
  ...(['cancelled', 'succeeded', 'later'] as const),
]

/** The statuses of a box with their counts, the most urgent first. */
export function statusesOf({ statuses }: Pick<FlowBox, 'statuses'>): [NodeStatus, number][] {
  return URGENT.flatMap((status): [NodeStatus, number][] => {
    const many = statuses[status] ?? 0
    return many > 0 ? [[status, many]] : []
  })
}

/** The state of a flow as sign and word. A flow that is done may have failed. */
export function verdictOf(
  { state }: Flow,
  progress: FlowProgress | null,
): { tone: Tone; word: string } {
  if (state !== 'done' || progress === null) return { tone: FLOW_TONES[state], word: state }
  if (progress.failed > 0) return { tone: 'failed', word: 'done' }
  return { tone: progress.cancelled > 0 ? 'cancelled' : 'succeeded', word: 'done' }
}

/** `3 of 5 succeeded, 1 parked`. */
export function progressText({ members, succeeded, ...rest }: FlowProgress): string {
  const others = (['failed', 'cancelled', 'parked', 'live'] as const).flatMap((word) =>
    rest[word] > 0 ? `${count(rest[word])} ${word}` : [],
  )
  return [`${count(succeeded)} of ${counted(members, 'job')} succeeded`, ...others].join(', ')
}
