/**
 * The worker loop (the worker-loop requirements, R3).
 *
 * - If the list and the table of R3 differ, the list counts: Claiming → Polling exists.
 * - The diagram of R3 lacks Startup; the table has it, and so does this machine.
 * - The loop of R3 never exits. Draining and Stopped are added so that a worker can be stopped
 *   without losing work.
 */
import { defineMachine } from './machine/define.ts'

const LOOP_STATES = [
  'Startup',
  'Connecting',
  'Recovery',
  'Polling',
  'Backoff',
  'Idle',
  'Claiming',
  'Processing',
  'ReportingSuccess',
  'ReportingFailure',
] as const

/** Every state leads to ErrorWait on an unhandled exception. Connecting has its own edge below. */
const exceptionEdges = LOOP_STATES.filter((from) => from !== 'Connecting').map(
  (from) => ({ from, to: 'ErrorWait', on: ['exception'] }) as const,
)

const drainEdges = [...LOOP_STATES, 'ErrorWait' as const].map(
  (from) =>
    ({
      from,
      to: 'Draining',
      on: ['drain'],
      because: 'a worker that is asked to stop must finish or release the jobs that it holds',
    }) as const,
)

/** How long a worker waits after an unexpected error before it connects again. */
export const ERROR_WAIT_MS = 5000

/** The machine of one worker slot. */
export const workerMachine = defineMachine({
  name: 'worker',
  version: 1,
  initial: 'Startup',
  sameState: 'refuse',
  states: {
    Startup: { meaning: 'Sets up logging, metrics and tracing.' },
    Connecting: { meaning: 'Opens or reopens its connection to the store.' },
    Recovery: { meaning: 'Recovers jobs whose leases have expired.' },
    Polling: { meaning: 'Asks the store for the next job that it may run.' },
    Backoff: { meaning: 'Found no job; computes how long to sleep.' },
    Idle: { meaning: 'Sleeps for that long, or until it is woken.' },
    Claiming: { meaning: 'Takes the lease on a job that it found.' },
    Processing: { meaning: 'Runs the handler.' },
    ReportingSuccess: { meaning: 'Records the success and its usage numbers.' },
    ReportingFailure: { meaning: 'Records the failure and its details.' },
    ErrorWait: { meaning: 'Waits five seconds after an unexpected error.' },
    Draining: { meaning: 'Claims no jobs; finishes or releases the jobs that it holds.' },
    Stopped: { meaning: 'Has ended.', terminal: true },
  },
  edges: [
    { from: 'Startup', to: 'Connecting', on: ['run'] },
    { from: 'Connecting', to: 'Recovery', on: ['connected'] },
    { from: 'Connecting', to: 'ErrorWait', on: ['connection-failed', 'exception'] },
    { from: 'Recovery', to: 'Polling', on: ['recovered', 'recovery-skipped'] },
    { from: 'Polling', to: 'Claiming', on: ['task-found'] },
    { from: 'Polling', to: 'Backoff', on: ['no-task-found'] },
    { from: 'Backoff', to: 'Idle', on: ['interval-set'] },
    { from: 'Idle', to: 'Connecting', on: ['sleep-done'] },
    { from: 'Claiming', to: 'Processing', on: ['lease-acquired'] },
    { from: 'Claiming', to: 'Polling', on: ['claim-lost'] },
    { from: 'Processing', to: 'ReportingSuccess', on: ['execution-ok'] },
    { from: 'Processing', to: 'ReportingFailure', on: ['execution-error'] },
    { from: 'ReportingSuccess', to: 'Polling', on: ['reported'] },
    { from: 'ReportingFailure', to: 'Polling', on: ['reported'] },
    { from: 'ErrorWait', to: 'Connecting', on: ['retry-sleep-done'] },
    ...exceptionEdges,
    {
      from: 'Polling',
      to: 'Recovery',
      on: ['recovery-due'],
      because: 'a worker that is never idle must recover expired leases too',
    },
    ...drainEdges,
    {
      from: 'Draining',
      to: 'Stopped',
      on: ['drained'],
      because: 'R3 has no end state; this one is reached only when the worker holds no job',
    },
  ],
})
