/** Machines as the API describes them, and the signs of their states. Pure. */
import type { Role } from '../src/core/lifecycles/lifecycle.ts'

interface MachineState {
  readonly role?: Role
  readonly meaning?: string
  readonly terminal?: boolean
}

export interface MachineEdge {
  readonly from: string
  readonly to: string
  readonly on: readonly string[]
  readonly operator?: boolean
  readonly because?: string
}

export interface MachineData {
  readonly name: string
  readonly kind: string
  readonly version: number
  readonly initial: string
  readonly states: Readonly<Record<string, MachineState>>
  readonly edges: readonly MachineEdge[]
}

/** The sign and colour of a state; `DESIGN.md` lists them. */
export type Tone =
  | 'idle'
  | 'scheduled'
  | 'ready'
  | 'running'
  | 'retrying'
  | 'waiting'
  | 'blocked'
  | 'succeeded'
  | 'failed'
  | 'parked'
  | 'cancelled'

const TONES: Readonly<Record<Role, Tone>> = {
  idle: 'idle',
  waiting: 'waiting',
  ready: 'ready',
  held: 'running',
  parked: 'parked',
  succeeded: 'succeeded',
  failed: 'failed',
  cancelled: 'cancelled',
}

/** Names of the built-in machines whose role does not say enough, or that have no roles. */
const NAMED: Readonly<Record<string, Tone>> = {
  created: 'idle',
  waiting: 'waiting',
  ready: 'ready',
  blocked: 'blocked',
  parked: 'parked',
  scheduled: 'scheduled',
  retrying: 'retrying',
  queued: 'ready',
  pending: 'ready',
  running: 'running',
  succeeded: 'succeeded',
  done: 'succeeded',
  failed: 'failed',
  error: 'failed',
  quarantined: 'parked',
  cancelled: 'cancelled',
  aborted: 'failed',
  committed: 'succeeded',
  leased: 'ready',
  in_progress: 'running',
  draining: 'retrying',
  processing: 'running',
}

/** The tone of a state. Users' own states have the tone of their role. */
export function toneOf(state: string, role?: Role): Tone {
  const named = Object.hasOwn(NAMED, state.toLowerCase()) ? NAMED[state.toLowerCase()] : undefined
  if (role === undefined) return named ?? 'idle'
  return role === 'waiting' && (named === 'scheduled' || named === 'retrying') ? named : TONES[role]
}
