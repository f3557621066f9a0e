/** What operators do to jobs: the names of the API, and when each is offered. */
import type { Tone } from '../machine-data.ts'

export type Verb =
  | 'redrive'
  | 'retry'
  | 'discard'
  | 'cancel'
  | 'quarantine'
  | 'submit'
  | 'approve'
  | 'reject'
  | 'copy'

export interface VerbSpec {
  readonly verb: Verb
  readonly title: string
  readonly says: string
  /** The states in which it is offered. The server decides whether it applies. */
  readonly tones: readonly Tone[]
}

export const VERBS: readonly VerbSpec[] = [
  {
    verb: 'redrive',
    title: 'Redrive',
    says: 'Runs parked and failed jobs again, with fresh budgets.',
    tones: ['parked', 'failed'],
  },
  {
    verb: 'retry',
    title: 'Run now',
    says: 'A waiting job becomes due now.',
    tones: ['retrying', 'waiting', 'scheduled'],
  },
  {
    verb: 'submit',
    title: 'Submit',
    says: 'Makes jobs ready that were enqueued with a hold.',
    tones: ['idle'],
  },
  {
    verb: 'discard',
    title: 'Discard',
    says: 'Ends parked jobs as failed, without running them again.',
    tones: ['parked'],
  },
  {
    verb: 'quarantine',
    title: 'Park',
    says: 'Parks jobs until they are redriven or cancelled.',
    tones: ['ready', 'scheduled', 'retrying', 'waiting', 'idle'],
  },
  {
    verb: 'cancel',
    title: 'Cancel',
    says: 'Cancels jobs; a running handler is aborted.',
    tones: ['ready', 'scheduled', 'retrying', 'waiting', 'running', 'parked', 'idle'],
  },
  {
    verb: 'copy',
    title: 'Copy',
    says: 'Enqueues a copy of an ended job.',
    tones: ['succeeded', 'failed', 'cancelled'],
  },
]

/** Stalled jobs wait for this one. */
export const APPROVE: VerbSpec = {
  verb: 'approve',
  title: 'Approve recovery',
  says: 'Approves the recovery of stalled jobs, whose lease has expired.',
  tones: ['running'],
}
