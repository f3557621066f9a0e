import { JobNotFound, PawlError } from 'pawl'
import * as pawl from 'pawl/errors'
import { encode, InvalidTransition, NotDue } from 'pawl/rules'
import { describe, expect, it } from 'vitest'

const CAUSE = new Error('connect ECONNREFUSED')
const ENDED = { outcome: 'failed', endedAt: 1, keepUntil: 2 } as const
const REMOVED = { id: 'j', type: 't', key: 'k', ...ENDED }
const RATE = { type: 't', key: 'k', limit: 1, periodMs: 10 }
const DAMAGE = { line: 1, offset: 0, why: 'it is odd' }

/** Every class with its code. Codes are stable: a line may be added here, but never changed. */
const SAMPLES: readonly (readonly [name: string, code: string, make: () => PawlError])[] = [
  ['MachineUnsound', 'E_MACHINE_UNSOUND', () => new pawl.MachineUnsound('m', ['a', 'b'])],
  ['DefinitionInvalid', 'E_DEFINITION_INVALID', () => new pawl.DefinitionInvalid('retry', 'no')],
  ['InvalidTransition', 'E_TRANSITION_INVALID', () => new InvalidTransition('m', 'a', 'b', ['c'])],
  ['TransitionRace', 'E_TRANSITION_RACE', () => new pawl.TransitionRace('job-1')],
  ['JobNotFound', 'E_JOB_NOT_FOUND', () => new JobNotFound('job-1')],
  ['JobExists', 'E_JOB_EXISTS', () => new pawl.JobExists('job-1')],
  ['JobEnded', 'E_JOB_ENDED', () => new pawl.JobEnded('job-1', 'failed', 'park')],
  ['StaleFence', 'E_STALE_FENCE', () => new pawl.StaleFence('job-1', 'expired')],
  ['LeaseLost', 'E_LEASE_LOST', () => new pawl.LeaseLost('job-1', 2)],
  ['LeaseLive', 'E_LEASE_LIVE', () => new pawl.LeaseLive('job-1', 5)],
  ['Committed', 'E_COMMITTED', () => new pawl.Committed('job-1', 'cancel')],
  ['Unsupported', 'E_UNSUPPORTED', () => new pawl.Unsupported('leased', 'redrive')],
  ['NotDue', 'E_NOT_DUE', () => new NotDue('job-1', 5)],
  ['JobParked', 'E_JOB_PARKED', () => new pawl.JobParked('job-1', 'parked')],
  ['DependencyOpen', 'E_DEPENDENCY_OPEN', () => new pawl.DependencyOpen('j', 'redrive', 'k')],
  ['JobStarted', 'E_JOB_STARTED', () => new pawl.JobStarted('job-1', 'replace')],
  [
    'ReplayMismatch',
    'E_REPLAY_MISMATCH',
    () => new pawl.ReplayMismatch('job-1', ['sleep "a"'], ['signal "b"']),
  ],
  ['CommandInvalid', 'E_COMMAND_INVALID', () => new pawl.CommandInvalid('queue', 'is odd')],
  ['ValueInvalid', 'E_VALUE_INVALID', () => new pawl.ValueInvalid('$.a', 'is odd')],
  ['LifecycleUnknown', 'E_LIFECYCLE_UNKNOWN', () => new pawl.LifecycleUnknown('task', 9)],
  [
    'MachineChanged',
    'E_MACHINE_CHANGED',
    () => new pawl.MachineChanged('parcel', 1, ['edges'], { stored: 'a', own: 'b' }),
  ],
  [
    'MigrationInvalid',
    'E_MIGRATION_INVALID',
    () => new pawl.MigrationInvalid('parcel', 1, 2, ['packed has no target']),
  ],
  ['LedgerBroken', 'E_LEDGER_BROKEN', () => new pawl.LedgerBroken('job 1', 3, 'a gap')],
  ['RunNotFound', 'E_RUN_NOT_FOUND', () => new pawl.RunNotFound()],
  ['RunExists', 'E_RUN_EXISTS', () => new pawl.RunExists('run-1')],
  ['RunEnded', 'E_RUN_ENDED', () => new pawl.RunEnded('run-1', 'DONE')],
  ['GuardRefused', 'E_GUARD_REFUSED', () => new pawl.GuardRefused('a', 'b', 'not yet')],
  ['RewindRefused', 'E_REWIND_REFUSED', () => new pawl.RewindRefused('run-1', 'no')],
  ['Cancelled', 'E_CANCELLED', () => new pawl.Cancelled('job-1')],
  ['AttemptTimeout', 'E_ATTEMPT_TIMEOUT', () => new pawl.AttemptTimeout('job-1', 100)],
  [
    'EnqueueInterrupted',
    'E_ENQUEUE_INTERRUPTED',
    () => new pawl.EnqueueInterrupted({ count: 2, created: 1 }, 0, new Error('away')),
  ],
  ['AttemptStalled', 'E_ATTEMPT_STALLED', () => new pawl.AttemptStalled('job-1', 100)],
  ['WorkerStuck', 'E_WORKER_STUCK', () => new pawl.WorkerStuck('worker-1', 'job-1', 100)],
  ['DeadlinePassed', 'E_DEADLINE_PASSED', () => new pawl.DeadlinePassed('job-1', 5)],
  ['ConnectAborted', 'E_CONNECT_ABORTED', () => new pawl.ConnectAborted()],
  ['HeartbeatFailed', 'E_HEARTBEAT_FAILED', () => new pawl.HeartbeatFailed(new Error('away'))],
  ['RunDiffers', 'E_RUN_DIFFERS', () => new pawl.RunDiffers('run-1', 'input')],
  ['ShuttingDown', 'E_SHUTTING_DOWN', () => new pawl.ShuttingDown()],
  ['PawlClosed', 'E_PAWL_CLOSED', () => new pawl.PawlClosed('work')],
  ['InputInvalid', 'E_INPUT_INVALID', () => new pawl.InputInvalid('mail', 'is odd')],
  ['SignalInvalid', 'E_SIGNAL_INVALID', () => new pawl.SignalInvalid('approval', 'is odd')],
  ['Suspended', 'E_SUSPENDED', () => new pawl.Suspended('job-1', 'sleep', 'pause')],
  ['LimitKeyInvalid', 'E_LIMIT_KEY_INVALID', () => new pawl.LimitKeyInvalid('a', 'b', 'is odd')],
  ['LimitUnknown', 'E_LIMIT_UNKNOWN', () => new pawl.LimitUnknown('shared/a')],
  ['WorkersTooOld', 'E_WORKERS_TOO_OLD', () => new pawl.WorkersTooOld(['w1'])],
  [
    'ResultNotStored',
    'E_RESULT_NOT_STORED',
    () => new pawl.ResultNotStored('job-1', '$.rows[3].at', 'is a function'),
  ],
  [
    'PayloadUnreadable',
    'E_PAYLOAD_UNREADABLE',
    () => new pawl.PayloadUnreadable('job-1', 'result', 'it has the unknown tag "@pawl:x"'),
  ],
  ['ResultTimeout', 'E_RESULT_TIMEOUT', () => new pawl.ResultTimeout('job-1', 100)],
  ['JobTypeTwice', 'E_JOB_TYPE_TWICE', () => new pawl.JobTypeTwice('mail')],
  ['JobNotEnded', 'E_JOB_NOT_ENDED', () => new pawl.JobNotEnded('job-1', 'copy')],
  ['JobRunning', 'E_JOB_RUNNING', () => new pawl.JobRunning('job-1', 'retry', false)],
  ['JobChanged', 'E_JOB_CHANGED', () => new pawl.JobChanged('job-1')],
  ['JobNotStalled', 'E_JOB_NOT_STALLED', () => new pawl.JobNotStalled('job-1')],
  ['EffectDelivered', 'E_EFFECT_DELIVERED', () => new pawl.EffectDelivered('j/mail/1')],
  ['EffectNotFound', 'E_EFFECT_NOT_FOUND', () => new pawl.EffectNotFound('j/mail/1')],
  ['SignalUndeclared', 'E_SIGNAL_UNDECLARED', () => new pawl.SignalUndeclared('t', 's', ['a'])],
  ['JobNotAsking', 'E_JOB_NOT_ASKING', () => new pawl.JobNotAsking('j')],
  ['AfterMissing', 'E_AFTER_MISSING', () => new pawl.AfterMissing('report', ['pages'])],
  ['DependencyUnmet', 'E_DEPENDENCY_UNMET', () => new pawl.DependencyUnmet('j', 'pages')],
  ['TokenInvalid', 'E_TOKEN_INVALID', () => new pawl.TokenInvalid()],
  ['TokenExpired', 'E_TOKEN_EXPIRED', () => new pawl.TokenExpired(0)],
  ['TokenUsed', 'E_TOKEN_USED', () => new pawl.TokenUsed()],
  ['TokensOff', 'E_TOKENS_OFF', () => new pawl.TokensOff()],
  ['EffectUnknown', 'E_EFFECT_UNKNOWN', () => new pawl.EffectUnknown('order', 'mail')],
  ['DeliveryTimeout', 'E_DELIVERY_TIMEOUT', () => new pawl.DeliveryTimeout('job-1/mail/1', 100)],
  [
    'RunDefinitionUnknown',
    'E_RUN_DEFINITION_UNKNOWN',
    () => new pawl.RunDefinitionUnknown('run-1', 'docs', []),
  ],
  ['RunIncomplete', 'E_RUN_INCOMPLETE', () => new pawl.RunIncomplete('run-1')],
  ['RunCancelled', 'E_RUN_CANCELLED', () => new pawl.RunCancelled('run-1', 'no')],
  ['RunInterrupted', 'E_RUN_INTERRUPTED', () => new pawl.RunInterrupted('run-1')],
  ['RunFailure', 'E_RUN_FAILURE', () => new pawl.RunFailure('run-1', 'no')],
  ['NodeOver', 'E_NODE_OVER', () => new pawl.NodeOver('DRAFTING')],
  ['WorkNested', 'E_WORK_NESTED', () => new pawl.WorkNested('a', 'b')],
  ['WorkTwice', 'E_WORK_TWICE', () => new pawl.WorkTwice('a')],
  ['WorkUnknown', 'E_WORK_UNKNOWN', () => new pawl.WorkUnknown('run-1', ['a'])],
  [
    'WorkJobFailed',
    'E_WORK_JOB_FAILED',
    () => new pawl.WorkJobFailed('a', 'job-1', 'failed', 'no'),
  ],
  ['QueueMissing', 'E_QUEUE_MISSING', () => new pawl.QueueMissing('a')],
  ['ArtifactUnknown', 'E_ARTIFACT_UNKNOWN', () => new pawl.ArtifactUnknown('run-1', 'plan')],
  ['InputFileInvalid', 'E_INPUT_FILE_INVALID', () => new pawl.InputFileInvalid('/a', 'it is odd')],
  ['RunNameInvalid', 'E_RUN_NAME_INVALID', () => new pawl.RunNameInvalid('run id', 'is odd')],
  ['RunHeld', 'E_RUN_HELD', () => new pawl.RunHeld('run-1', undefined)],
  ['RunLost', 'E_RUN_LOST', () => new pawl.RunLost('run-1')],
  ['RunLogDamaged', 'E_RUN_LOG_DAMAGED', () => new pawl.RunLogDamaged('run-1', DAMAGE)],
  ['EventInvalid', 'E_EVENT_INVALID', () => new pawl.EventInvalid('run-1', 'X', 'is odd')],
  ['RunNotDamaged', 'E_RUN_NOT_DAMAGED', () => new pawl.RunNotDamaged('run-1')],
  ['ArtifactMissing', 'E_ARTIFACT_MISSING', () => new pawl.ArtifactMissing('run-1', 'a', 'b')],
  ['ArtifactChanged', 'E_ARTIFACT_CHANGED', () => new pawl.ArtifactChanged('run-1', 'a', 'b', 'c')],
  ['JournalFailed', 'E_JOURNAL_FAILED', () => new pawl.JournalFailed('run-1', 'append', 'full')],
  ['JournalClosed', 'E_JOURNAL_CLOSED', () => new pawl.JournalClosed('The journal', 'is closed')],
  ['PathRefused', 'E_PATH_REFUSED', () => new pawl.PathRefused('/a', 'is a link')],
  ['BundleInvalid', 'E_BUNDLE_INVALID', () => new pawl.BundleInvalid(1, 'is odd')],
  ['TelemetryRefused', 'E_TELEMETRY_REFUSED', () => new pawl.TelemetryRefused('http://a', 500)],
  ['TokenMissing', 'E_TOKEN_MISSING', () => new pawl.TokenMissing('0.0.0.0')],
  ['LoginRequired', 'E_LOGIN_REQUIRED', () => new pawl.LoginRequired('There is no token')],
  ['LoginsLimited', 'E_LOGINS_LIMITED', () => new pawl.LoginsLimited(1000)],
  ['NameUnknown', 'E_NAME_UNKNOWN', () => new pawl.NameUnknown('queue', 'q', ['mail', 'images'])],
  ['OriginRefused', 'E_ORIGIN_REFUSED', () => new pawl.OriginRefused('Host')],
  ['RoleMissing', 'E_ROLE_MISSING', () => new pawl.RoleMissing('ann', ['read'], ['work'])],
  ['ServerBusy', 'E_SERVER_BUSY', () => new pawl.ServerBusy('requests', 9)],
  ['RequestRefused', 'E_REQUEST_REFUSED', () => new pawl.RequestRefused(400, 'It is odd')],
  ['StoreNameInvalid', 'E_STORE_NAME_INVALID', () => new pawl.StoreNameInvalid('mysql://x')],
  [
    'DriverMissing',
    'E_DRIVER_MISSING',
    () => new pawl.DriverMissing('pg', 'It is missing', 'Install it: npm install pg.', CAUSE),
  ],
  [
    'StoreUnusable',
    'E_STORE_UNUSABLE',
    () => new pawl.StoreUnusable('a.db', 'it is odd', 'Open another file or schema.'),
  ],
  ['SchemaTooNew', 'E_SCHEMA_TOO_NEW', () => new pawl.SchemaTooNew(9, 8)],
  ['SchemaDrift', 'E_SCHEMA_DRIFT', () => new pawl.SchemaDrift(3)],
  ['NotRestorable', 'E_NOT_RESTORABLE', () => new pawl.NotRestorable('pawl_jobs', 'missing', 'id')],
  ['StoreBusy', 'E_STORE_BUSY', () => new pawl.StoreBusy(5000)],
  ['SealUnsettled', 'E_SEAL_UNSETTLED', () => new pawl.SealUnsettled(1, 20)],
  ['StoreUnavailable', 'E_STORE_UNAVAILABLE', () => new pawl.StoreUnavailable(5000, CAUSE)],
  ['OutcomeUnknown', 'E_OUTCOME_UNKNOWN', () => new pawl.OutcomeUnknown(CAUSE)],
  ['StoreClosed', 'E_STORE_CLOSED', () => new pawl.StoreClosed()],
  ['StoreFull', 'E_STORE_FULL', () => new pawl.StoreFull('it is odd', CAUSE)],
  ['StoreMalformed', 'E_STORE_MALFORMED', () => new pawl.StoreMalformed('it is odd', CAUSE)],
  ['StoreDenied', 'E_STORE_DENIED', () => new pawl.StoreDenied('it is odd', CAUSE)],
  ['StoreIoFailed', 'E_STORE_IO', () => new pawl.StoreIoFailed('it is odd', CAUSE)],
  ['StoreFailed', 'E_STORE_FAILED', () => new pawl.StoreFailed('it is odd', CAUSE)],
  ['JobDamaged', 'E_JOB_DAMAGED', () => new pawl.JobDamaged('j', 'it is odd')],
  [
    'MachineDamaged',
    'E_MACHINE_DAMAGED',
    () => new pawl.MachineDamaged('standard', 1, 'it is odd'),
  ],
  ['JobRemoved', 'E_JOB_REMOVED', () => new pawl.JobRemoved(REMOVED)],
  ['RateLimited', 'E_RATE_LIMITED', () => new pawl.RateLimited(RATE, 5)],
  [
    'KeyFunctionFailed',
    'E_KEY_FUNCTION_FAILED',
    () => new pawl.KeyFunctionFailed('t', 'debounce', 'threw'),
  ],
  ['KeyTaken', 'E_KEY_TAKEN', () => new pawl.KeyTaken('t', 'k', 'j')],
  ['QueueFull', 'E_QUEUE_FULL', () => new pawl.QueueFull('q', 10)],
  ['FlowNotFound', 'E_FLOW_NOT_FOUND', () => new pawl.FlowNotFound('f')],
  ['BatchClosed', 'E_BATCH_CLOSED', () => new pawl.BatchClosed('b')],
  ['ScheduleNotFound', 'E_SCHEDULE_NOT_FOUND', () => new pawl.ScheduleNotFound('s')],
  ['ScheduleDamaged', 'E_SCHEDULE_DAMAGED', () => new pawl.ScheduleDamaged('s')],
  ['UseTx', 'E_USE_TX', () => new pawl.UseTx()],
  ['CommitTooSlow', 'E_COMMIT_TOO_SLOW', () => new pawl.CommitTooSlow(5000)],
  ['TransactionTooSlow', 'E_TRANSACTION_TOO_SLOW', () => new pawl.TransactionTooSlow(5000)],
  ['TxEnded', 'E_TX_ENDED', () => new pawl.TxEnded()],
  ['TxBroken', 'E_TX_BROKEN', () => new pawl.TxBroken()],
  ['TxOwned', 'E_TX_OWNED', () => new pawl.TxOwned()],
  ['TxInvalid', 'E_TX_INVALID', () => new pawl.TxInvalid('it is odd')],
  ['EffectsOpen', 'E_EFFECTS_OPEN', () => new pawl.EffectsOpen('j')],
  ['StoreDamaged', 'E_STORE_DAMAGED', () => new pawl.StoreDamaged(['a trigger is missing'])],
  ['StoreUnsafe', 'E_STORE_UNSAFE', () => new pawl.StoreUnsafe('a.db', 'locks were lost')],
  ['TxForeign', 'E_TX_FOREIGN', () => new pawl.TxForeign('theirs', 'ours')],
]

/** The names of all classes of errors that the package exports. */
function exportedErrors(): string[] {
  return Object.entries(pawl)
    .filter(([, value]) => typeof value === 'function' && value.prototype instanceof PawlError)
    .map(([name]) => name)
}

describe('errors', () => {
  it('are all in the list, and nothing else is', () => {
    expect(exportedErrors().sort()).toEqual(SAMPLES.map(([name]) => name).sort())
  })

  it('have one code each, and no two the same', () => {
    const codes = SAMPLES.map(([, , make]) => make().code)
    expect(new Set(codes).size).toBe(codes.length)
    for (const code of codes) expect(code).toMatch(/^E_[A-Z]+(_[A-Z]+)*$/)
  })

  it.each(SAMPLES)(
    '%s has the code %s, a message, a hint and plain details',
    (name, code, make) => {
      const sample = make()
      expect(sample).toBeInstanceOf(PawlError)
      expect(sample).toBeInstanceOf(Error)
      expect([sample.name, sample.constructor.name, sample.code]).toEqual([name, name, code])
      expect(sample.message).toMatch(/\S/)
      expect(sample.message).not.toMatch(/undefined|\[object|NaN/)
      expect(sample.hint).toMatch(/^[A-Z].*\.$/)
      expect(sample.stack).toContain(name)
      // Encoding refuses whatever would not come back as it was.
      const details: unknown = JSON.parse(encode(sample.details))
      expect(details).toEqual(sample.details)
    },
  )
})

describe('an error', () => {
  it.each(SAMPLES)('%s says what to do next, in a sentence of its own', (_name, _code, make) => {
    const { hint, message } = make()
    expect(hint.length).toBeGreaterThan(25)
    expect(hint).toMatch(/[.?]$/)
    expect(hint).not.toMatch(/^(Correct|Change) the (argument|input|definition)\.$/)
    expect(`${message} ${hint}`).not.toMatch(/\d{4,} ms|nobody|whoever/)
  })

  it('shows a rejected field in a bounded message', () => {
    expect(new pawl.CommandInvalid('x'.repeat(5000), 'is odd').message.length).toBeLessThan(200)
  })
})

describe('an invalid transition', () => {
  it('reads as R0 and R4 have it, and says where the way leads instead', () => {
    const error = new InvalidTransition('hardened', 'pending', 'succeeded', ['running'])
    expect(error.message).toBe('Invalid transition: pending → succeeded')
    expect(error.hint).toBe('In machine "hardened", pending leads only to running.')
    expect(error).toMatchObject({ from: 'pending', to: 'succeeded', allowed: ['running'] })
    expect(error.details).toMatchObject({ machine: 'hardened', from: 'pending', to: 'succeeded' })
  })

  it('says so where no way leads on', () => {
    const error = new InvalidTransition('run', 'DONE', 'FAILED', [])
    expect(error.hint).toBe('In machine "run", DONE has no outgoing edge.')
  })

  it('names the trigger where one was asked for instead of a state', () => {
    const error = new InvalidTransition('task', 'done', 'running', [], 'claim')
    expect(error.hint).toBe('In machine "task", claim does not apply in done.')
    expect(error.details).toMatchObject({ trigger: 'claim' })
  })
})

describe('an error about a job', () => {
  it('names the job where it is known', () => {
    expect(new JobNotFound('job-1').message).toBe('Job job-1 was not found')
    expect(new JobNotFound().message).toBe('The job was not found')
    expect(encode(new JobNotFound().details)).toBe('{}')
  })

  it('tells a job that waits from one that was never submitted', () => {
    expect(new NotDue('job-1', 5).hint).not.toBe(new NotDue('job-1', null).hint)
    expect(new NotDue('job-1', null).details).toEqual({ jobId: 'job-1', runAt: null })
  })
})
