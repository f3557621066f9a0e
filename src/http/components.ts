/** The schemas of things that several routes return. Closed: a new field must be added here. */
import { executionMachine } from '../core/execution.ts'
import { ACTORS, FACT_CODES } from '../core/job/facts.ts'
import { LANES } from '../core/job/lanes.ts'
import { EFFECT_STATES } from '../stores/contract/outbox.ts'
import { FLOW_COMPONENTS } from './flow-components.ts'
import { LINK_COMPONENTS } from './link-components.ts'
import { PAYLOAD } from './payloads.ts'
import { PROBLEM } from './problem.ts'
import {
  flag,
  type JsonSchema,
  list,
  map,
  nullable,
  oneOf,
  open,
  record,
  ref,
  text,
  time,
  whole,
} from './schema.ts'

const EXECUTION_STATUSES = [...executionMachine.states.keys()]
const LANE = oneOf(Object.keys(LANES))
const OUTCOME = text('succeeded, failed or cancelled')
const ACTOR = oneOf(ACTORS)
const lanes = record(Object.fromEntries(Object.keys(LANES).map((lane) => [lane, whole()])))

const JOB_ERROR = record(
  { message: text(), kind: text(), type: oneOf(['RETRYABLE', 'TERMINAL']) },
  { name: text(), code: text(), fingerprint: text() },
)

const EXECUTION_NOW = record({
  status: oneOf(EXECUTION_STATUSES),
  claim: text(),
  worker: text(),
  leaseUntil: time(),
})

const ATTRIBUTES = {
  type: text(),
  queue: text(),
  lifecycle: text(),
  lifecycleVersion: whole(),
  tags: list(text()),
  key: nullable(text()),
  limitKey: nullable(text()),
  retryOf: nullable(text()),
  timeoutMs: nullable(whole()),
  deadlineAt: nullable(time()),
  policy: nullable(open('the retry policy of the job, if its type has one')),
}

const JOB = record({
  id: text(),
  ...ATTRIBUTES,
  state: text(),
  seq: whole('the number of its last fact'),
  attempt: whole(),
  failures: whole(),
  crashes: whole(),
  releases: whole(),
  priority: whole(),
  aheadMs: whole('ordered as if it had been due so much earlier'),
  runAt: nullable(time()),
  createdAt: time(),
  startedAt: nullable(time()),
  endedAt: nullable(time()),
  updatedAt: time(),
  outcome: nullable(OUTCOME),
  reason: nullable(text()),
  error: nullable(JOB_ERROR),
  blockedReason: nullable(text()),
  stalled: flag(),
  execution: nullable(EXECUTION_NOW),
  flow: nullable(text('its flow or batch; of an invoked child, its parent')),
  node: nullable(whole('its number there')),
  links: whole('what connects it with other jobs, as bits; 0 for most jobs'),
})

const WAITS = oneOf(['sleep', 'signal', 'children'])

const WAIT = record(
  {
    for: WAITS,
    name: text(),
    n: whole('it is the n-th wait of its name'),
    until: nullable(time('when it ends at the latest; null if it has no time-out')),
  },
  {
    children: whole('how many children it waits for'),
    concurrency: whole('how many of them may be under way at once'),
    abandons: flag('children go on if their parent ends without success'),
  },
)

const SIGNAL = record(
  {
    seq: whole('the number of its fact'),
    at: time(),
    name: text(),
    key: text(),
    payload: ref('Payload'),
    by: text('who sent it: the operator, the caller, or the kind of the sender'),
  },
  {
    note: text('the reason of an operator'),
    receivedBy: whole('the number of the fact of the wait that received it; absent if unread'),
  },
)

const FACT = record(
  {
    version: whole(),
    jobId: text(),
    seq: whole(),
    at: time(),
    trigger: oneOf(Object.keys(FACT_CODES)),
    from: nullable(text()),
    to: text(),
    actor: ACTOR,
  },
  {
    via: list(text()),
    operator: text(),
    reason: text(),
    note: text(),
    created: open('what the job was created with'),
    rebased: open('the whole job after a repair'),
    migrated: record({ from: whole(), to: whole() }),
    execution: open('what the step did to an attempt'),
    spends: text(),
    resets: flag(),
    outcome: OUTCOME,
    runAt: nullable(time()),
    delayAsked: flag(),
    priority: whole(),
    aheadMs: whole(),
    error: nullable(JOB_ERROR),
    thrown: open('what the handler threw'),
    blockedReason: nullable(text()),
    stalled: flag(),
    step: record({ name: text(), n: whole() }),
    after: open('what the job waits for before its first attempt'),
    as: text('children: name and number of the invoke'),
    links: whole('what connects the job with others from here on, as bits'),
    dependency: text('the job whose end decided about this one'),
    effects: whole(),
    signal: record({ name: text(), key: text() }),
    wait: ref('Wait'),
    received: record(
      { for: WAITS, name: text(), n: whole() },
      { signal: whole('the number of the fact of the signal') },
    ),
    timing: record({ queueMs: whole(), durationMs: whole() }),
    usage: map({ type: 'number' }),
    metadata: map(text()),
    traceId: text(),
    spanId: text(),
    traceFlags: whole('0 if the span is not sampled'),
    traceState: text(),
  },
)

const REFUSAL = record({ id: text(), code: text(), message: text(), hint: text() })

const REPORT = record(
  {
    dryRun: flag(),
    matched: whole('how many jobs were selected, including ids without a job'),
    done: whole(),
    same: whole('jobs that needed no change'),
    asked: whole('running jobs whose worker was asked to cancel them'),
    refused: whole(),
    refusals: list(REFUSAL, { description: 'the first refusals' }),
    sample: list(text(), { description: 'the first of the selected jobs' }),
    copies: list(record({ of: text(), id: text() })),
    more: flag('whether jobs are left, because of the limit'),
  },
  { ids: list(text(), { description: 'in a dry run by a filter: pass them as `among`' }) },
)

const EXPLANATION = record(
  { kind: text(), says: text('why the job is not running, in one sentence') },
  {
    command: text('the command that would change it'),
    enqueuedBy: text('the job that enqueued it'),
    schedule: text('the schedule that made it'),
    waitsFor: list(text(), { description: 'jobs that it waits for; the last one is the cause' }),
  },
)

const EFFECT = record(
  {
    key: text(),
    jobId: text(),
    jobType: text(),
    name: text(),
    n: whole(),
    state: oneOf(EFFECT_STATES),
    tries: whole(),
    runAt: time(),
    payload: ref('Payload'),
  },
  { claimed: flag(), error: text() },
)

const QUEUE = record(
  { name: text(), lanes, workers: whole('live workers that claim from it') },
  {
    readySince: time(),
    oldestReadyMs: whole(),
    maxDepth: whole(),
    maxWaitMs: whole(),
    pausedAt: time(),
    pausedBy: text(),
    pauseReason: text(),
  },
)

const SETTINGS = record({
  pausedAt: nullable(time()),
  maxDepth: nullable(whole()),
  maxWaitMs: nullable(whole()),
})

const QUEUE_RECORD = record(
  {
    number: whole(),
    at: time(),
    queue: text(),
    action: oneOf(['pause', 'resume', 'limit']),
    actor: ACTOR,
    before: SETTINGS,
    after: SETTINGS,
  },
  { operator: text(), note: text() },
)

const WORKER = record(
  {
    id: text(),
    state: text(),
    activity: oneOf(['working', 'idle', 'draining', 'gone']),
    startedAt: time(),
    seenAt: time(),
    live: flag(),
    running: whole(),
    concurrency: whole(),
    stuck: whole(),
    silent: list(record({ job: text(), attempt: whole(), since: time() })),
  },
  {
    version: text(),
    queues: list(text()),
    types: list(text()),
    renewal: oneOf(['thread', 'timer']),
    renewalAdvice: text(),
    schedules: list(text()),
    zoneData: text(),
  },
)

const FINDING = record(
  {
    check: text(),
    promise: text(),
    severity: oneOf(['error', 'warning', 'notice']),
    subject: text(),
    what: text(),
    evidence: open('the values that the check has read'),
  },
  { remedy: text(), advice: text() },
)

const REPAIR = record(
  {
    subject: text(),
    remedy: text(),
    why: text(),
    changes: list(record({ column: text() }, { from: {}, to: {} })),
    aside: whole(),
  },
  { factSeq: whole() },
)

const EXAMINATION = record({
  ok: flag(),
  complete: flag('whether every job was checked'),
  jobs: whole(),
  errors: whole(),
  warnings: whole(),
  notices: whole(),
  findings: list(FINDING),
  repairs: list(REPAIR),
  repairCount: whole(),
})

const EXECUTION = record({
  execId: text(),
  jobId: text(),
  attempt: whole(),
  leaseOwner: text(),
  leaseExpiresAt: time(),
  status: oneOf(EXECUTION_STATUSES),
  startedAt: nullable(time()),
  finishedAt: nullable(time()),
  timing: nullable(record({ queueMs: whole(), durationMs: whole() })),
  error: nullable(JOB_ERROR),
  thrown: nullable(open('what the handler threw')),
  abort: nullable(text()),
  final: flag(),
})

const CHANGE = record({ path: list(text()) }, { before: {}, after: {} })

export const COMPONENTS: Readonly<Record<string, JsonSchema>> = {
  Problem: PROBLEM,
  Payload: PAYLOAD,
  Job: JOB,
  Lane: LANE,
  Fact: FACT,
  Signal: SIGNAL,
  Wait: WAIT,
  Execution: EXECUTION,
  Explanation: EXPLANATION,
  OperatorReport: REPORT,
  Effect: EFFECT,
  Queue: QUEUE,
  QueueRecord: QUEUE_RECORD,
  Worker: WORKER,
  Examination: EXAMINATION,
  Change: CHANGE,
  Lanes: lanes,
  ...FLOW_COMPONENTS,
  ...LINK_COMPONENTS,
}
