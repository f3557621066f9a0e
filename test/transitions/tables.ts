// Every machine as R0 to R4 have it, typed by hand. Lists of states are words with spaces
// between them. Nothing here is computed from the machines: these tables are what judges them.
import {
  document,
  executionMachine,
  hardened,
  leased,
  type Machine,
  standard,
  task,
  workerMachine,
} from 'pawl/rules'
import { documentationRun } from 'pawl/runs'

/** States by the state that leads to them. */
type Targets = Readonly<Record<string, string>>

/** One machine as the requirements and the rules define it. */
export interface MachineTable {
  readonly name: string
  /** 1 if absent. */
  readonly version?: number
  readonly machine: Machine
  readonly initial: string
  readonly sameState: 'noop' | 'refuse'
  readonly terminal: string
  readonly stable?: string
  readonly transitional?: string
  /** Every state, with the targets that its requirements give it. */
  readonly documented: Targets
  /** The targets that the rules add to those of the document. */
  readonly added: Targets
  /** Edges that only a named person may take, as from→to. */
  readonly operator: string
  /** How many ordered pairs are edges, the same state, and refused: counted by hand. */
  readonly counts: readonly [edges: number, same: number, refused: number]
  /** Every trigger, with the edges that it takes, as from→to. */
  readonly triggers: Readonly<Record<string, string>>
}

/** The design's table, and the rules for delays, suspension, waits and parking. */
const standardTable: MachineTable = {
  name: 'standard',
  version: 2,
  machine: standard.machine,
  initial: 'created',
  sameState: 'noop',
  terminal: 'succeeded failed cancelled',
  documented: {
    created: 'queued scheduled cancelled',
    scheduled: 'queued cancelled',
    queued: 'running cancelled',
    running: 'succeeded retrying failed quarantined queued cancelled',
    retrying: 'queued cancelled',
    succeeded: '',
    failed: 'queued',
    quarantined: 'queued failed cancelled',
    cancelled: '',
    waiting: '',
  },
  added: {
    created: 'quarantined',
    scheduled: 'quarantined',
    queued: 'scheduled quarantined',
    running: 'scheduled waiting',
    retrying: 'scheduled quarantined',
    waiting: 'queued cancelled quarantined',
  },
  operator: `quarantined→queued failed→queued quarantined→failed created→quarantined
    scheduled→quarantined queued→quarantined retrying→quarantined waiting→quarantined`,
  counts: [30, 10, 60],
  triggers: {
    submit: 'created→queued',
    schedule: 'created→scheduled',
    due: 'scheduled→queued retrying→queued waiting→queued',
    signal: 'waiting→queued',
    claim: 'queued→running',
    succeed: 'running→succeeded',
    retry: 'running→retrying',
    fail: 'running→failed',
    'give-up': 'running→quarantined',
    reject: 'running→quarantined',
    expire: 'running→retrying',
    release: 'running→queued',
    suspend: 'running→scheduled',
    wait: 'running→waiting',
    cancel: `created→cancelled scheduled→cancelled queued→cancelled running→cancelled
      retrying→cancelled waiting→cancelled quarantined→cancelled`,
    park: `created→quarantined scheduled→quarantined queued→quarantined running→quarantined
      retrying→quarantined waiting→quarantined`,
    redrive: 'quarantined→queued failed→queued',
    discard: 'quarantined→failed',
    reschedule: 'queued→scheduled retrying→scheduled',
    'run-now': 'scheduled→queued retrying→queued',
  },
}

/** R0, VALID_TRANSITIONS. Steps of several edges carry their trigger on each of them. */
const hardenedTable: MachineTable = {
  name: 'hardened',
  machine: hardened.machine,
  initial: 'pending',
  sameState: 'noop',
  terminal: 'succeeded',
  documented: {
    pending: 'running',
    running: 'succeeded failed',
    failed: 'pending quarantined',
    succeeded: '',
    quarantined: 'pending',
  },
  added: {},
  operator: 'quarantined→pending',
  counts: [6, 5, 14],
  triggers: {
    claim: 'pending→running',
    succeed: 'running→succeeded',
    retry: 'running→failed',
    due: 'failed→pending',
    'run-now': 'failed→pending',
    fail: 'running→failed failed→quarantined',
    'give-up': 'running→failed failed→quarantined',
    reject: 'running→failed failed→quarantined',
    expire: 'running→failed failed→pending',
    release: 'running→failed failed→pending',
    cancel: 'pending→running running→failed failed→quarantined',
    park: 'pending→running running→failed failed→quarantined',
    redrive: 'quarantined→pending',
  },
}

/** R1, job level transitions, and the one edge that its FAILED needs. */
const leasedTable: MachineTable = {
  name: 'leased',
  machine: leased.machine,
  initial: 'PENDING',
  sameState: 'noop',
  terminal: 'SUCCEEDED FAILED',
  documented: {
    PENDING: 'RUNNING',
    RUNNING: 'SUCCEEDED PENDING',
    SUCCEEDED: '',
    FAILED: '',
  },
  added: { RUNNING: 'FAILED' },
  operator: '',
  counts: [4, 4, 8],
  triggers: {
    claim: 'PENDING→RUNNING',
    succeed: 'RUNNING→SUCCEEDED',
    retry: 'RUNNING→PENDING',
    expire: 'RUNNING→PENDING',
    release: 'RUNNING→PENDING',
    fail: 'RUNNING→FAILED',
    'give-up': 'RUNNING→FAILED',
    reject: 'RUNNING→FAILED',
    cancel: 'PENDING→RUNNING RUNNING→FAILED',
  },
}

/** R2, valid state transitions. */
const documentTable: MachineTable = {
  name: 'document',
  machine: document.machine,
  initial: 'CREATED',
  sameState: 'noop',
  terminal: 'SUCCEEDED FAILED',
  documented: {
    CREATED: 'QUEUED',
    QUEUED: 'RUNNING FAILED',
    RUNNING: 'SUCCEEDED FAILED RETRYING',
    RETRYING: 'QUEUED',
    SUCCEEDED: '',
    FAILED: '',
  },
  added: {},
  operator: '',
  counts: [7, 6, 23],
  triggers: {
    submit: 'CREATED→QUEUED',
    due: 'CREATED→QUEUED RETRYING→QUEUED',
    'run-now': 'CREATED→QUEUED',
    claim: 'QUEUED→RUNNING',
    succeed: 'RUNNING→SUCCEEDED',
    fail: 'RUNNING→FAILED',
    'give-up': 'RUNNING→FAILED',
    reject: 'RUNNING→FAILED',
    retry: 'RUNNING→RETRYING',
    expire: 'RUNNING→RETRYING',
    release: 'RUNNING→RETRYING RETRYING→QUEUED',
    exhaust: 'QUEUED→FAILED',
    cancel: 'CREATED→QUEUED RETRYING→QUEUED QUEUED→FAILED RUNNING→FAILED',
  },
}

/** R3, the task: claim, report, recovery, and its section 4's manual intervention. */
const taskTable: MachineTable = {
  name: 'task',
  machine: task.machine,
  initial: 'pending',
  sameState: 'noop',
  terminal: 'done error',
  documented: {
    pending: 'running',
    running: 'done error pending',
    done: '',
    error: 'pending',
  },
  added: {},
  operator: 'error→pending',
  counts: [5, 4, 7],
  triggers: {
    claim: 'pending→running',
    succeed: 'running→done',
    fail: 'running→error',
    'give-up': 'running→error',
    reject: 'running→error',
    expire: 'running→pending',
    release: 'running→pending',
    cancel: 'pending→running running→error',
    redrive: 'error→pending',
  },
}

/** R1, execution level transitions. */
const executionTable: MachineTable = {
  name: 'execution',
  machine: executionMachine,
  initial: 'LEASED',
  sameState: 'noop',
  terminal: 'DONE ABORTED',
  documented: {
    LEASED: 'IN_PROGRESS ABORTED',
    IN_PROGRESS: 'COMMITTED ABORTED',
    COMMITTED: 'DONE',
    DONE: '',
    ABORTED: '',
  },
  added: {},
  operator: '',
  counts: [5, 5, 15],
  triggers: {
    start: 'LEASED→IN_PROGRESS',
    commit: 'IN_PROGRESS→COMMITTED',
    done: 'COMMITTED→DONE',
    abort: 'LEASED→ABORTED IN_PROGRESS→ABORTED',
  },
}

/** R3, its list of transitions; "any state" is every documented one but ErrorWait. */
const workerTable: MachineTable = {
  name: 'worker',
  machine: workerMachine,
  initial: 'Startup',
  sameState: 'refuse',
  terminal: 'Stopped',
  documented: {
    Startup: 'Connecting ErrorWait',
    Connecting: 'Recovery ErrorWait',
    Recovery: 'Polling ErrorWait',
    Polling: 'Claiming Backoff ErrorWait',
    Backoff: 'Idle ErrorWait',
    Idle: 'Connecting ErrorWait',
    Claiming: 'Processing Polling ErrorWait',
    Processing: 'ReportingSuccess ReportingFailure ErrorWait',
    ReportingSuccess: 'Polling ErrorWait',
    ReportingFailure: 'Polling ErrorWait',
    ErrorWait: 'Connecting',
    Draining: '',
    Stopped: '',
  },
  added: {
    Startup: 'Draining',
    Connecting: 'Draining',
    Recovery: 'Draining',
    Polling: 'Recovery Draining',
    Backoff: 'Draining',
    Idle: 'Draining',
    Claiming: 'Draining',
    Processing: 'Draining',
    ReportingSuccess: 'Draining',
    ReportingFailure: 'Draining',
    ErrorWait: 'Draining',
    Draining: 'Stopped',
  },
  operator: '',
  counts: [37, 0, 132],
  triggers: {
    run: 'Startup→Connecting',
    connected: 'Connecting→Recovery',
    'connection-failed': 'Connecting→ErrorWait',
    recovered: 'Recovery→Polling',
    'recovery-skipped': 'Recovery→Polling',
    'recovery-due': 'Polling→Recovery',
    'task-found': 'Polling→Claiming',
    'no-task-found': 'Polling→Backoff',
    'interval-set': 'Backoff→Idle',
    'sleep-done': 'Idle→Connecting',
    'lease-acquired': 'Claiming→Processing',
    'claim-lost': 'Claiming→Polling',
    'execution-ok': 'Processing→ReportingSuccess',
    'execution-error': 'Processing→ReportingFailure',
    reported: 'ReportingSuccess→Polling ReportingFailure→Polling',
    exception: `Startup→ErrorWait Connecting→ErrorWait Recovery→ErrorWait Polling→ErrorWait
      Backoff→ErrorWait Idle→ErrorWait Claiming→ErrorWait Processing→ErrorWait
      ReportingSuccess→ErrorWait ReportingFailure→ErrorWait`,
    'retry-sleep-done': 'ErrorWait→Connecting',
    drain: `Startup→Draining Connecting→Draining Recovery→Draining Polling→Draining
      Backoff→Draining Idle→Draining Claiming→Draining Processing→Draining
      ReportingSuccess→Draining ReportingFailure→Draining ErrorWait→Draining`,
    drained: 'Draining→Stopped',
  },
}

/** R4, valid transitions table. */
const runTable: MachineTable = {
  name: 'run',
  machine: documentationRun.machine,
  initial: 'CREATED',
  sameState: 'refuse',
  terminal: 'DONE FAILED CANCELLED',
  stable: 'PLAN_READY DRAFT_READY READY_FOR_PR',
  transitional: 'DRAFTING LINKING VALIDATING FIXING',
  documented: {
    CREATED: 'CLONED_INPUTS FAILED CANCELLED',
    CLONED_INPUTS: 'INGESTED FAILED CANCELLED',
    INGESTED: 'FACTS_READY FAILED CANCELLED',
    FACTS_READY: 'PLAN_READY FAILED CANCELLED',
    PLAN_READY: 'DRAFTING FAILED CANCELLED',
    DRAFTING: 'DRAFT_READY FAILED CANCELLED',
    DRAFT_READY: 'LINKING FAILED CANCELLED',
    LINKING: 'VALIDATING FAILED CANCELLED',
    VALIDATING: 'READY_FOR_PR FIXING FAILED CANCELLED',
    FIXING: 'VALIDATING FAILED CANCELLED',
    READY_FOR_PR: 'PR_OPENED FAILED CANCELLED',
    PR_OPENED: 'DONE FAILED CANCELLED',
    DONE: '',
    FAILED: '',
    CANCELLED: '',
  },
  added: {},
  operator: '',
  counts: [37, 0, 188],
  triggers: {
    clone: 'CREATED→CLONED_INPUTS',
    ingest: 'CLONED_INPUTS→INGESTED',
    extract: 'INGESTED→FACTS_READY',
    plan: 'FACTS_READY→PLAN_READY',
    draft: 'PLAN_READY→DRAFTING',
    drafted: 'DRAFTING→DRAFT_READY',
    link: 'DRAFT_READY→LINKING',
    validate: 'LINKING→VALIDATING FIXING→VALIDATING',
    pass: 'VALIDATING→READY_FOR_PR',
    fix: 'VALIDATING→FIXING',
    'open-pr': 'READY_FOR_PR→PR_OPENED',
    finish: 'PR_OPENED→DONE',
    fail: `CREATED→FAILED CLONED_INPUTS→FAILED INGESTED→FAILED FACTS_READY→FAILED
      PLAN_READY→FAILED DRAFTING→FAILED DRAFT_READY→FAILED LINKING→FAILED VALIDATING→FAILED
      FIXING→FAILED READY_FOR_PR→FAILED PR_OPENED→FAILED`,
    cancel: `CREATED→CANCELLED CLONED_INPUTS→CANCELLED INGESTED→CANCELLED FACTS_READY→CANCELLED
      PLAN_READY→CANCELLED DRAFTING→CANCELLED DRAFT_READY→CANCELLED LINKING→CANCELLED
      VALIDATING→CANCELLED FIXING→CANCELLED READY_FOR_PR→CANCELLED PR_OPENED→CANCELLED`,
  },
}

/** Every machine that ships. */
export const TABLES: readonly MachineTable[] = [
  standardTable,
  hardenedTable,
  leasedTable,
  documentTable,
  taskTable,
  executionTable,
  workerTable,
  runTable,
]
