// Every public function that takes an object of options refuses a field that it does not know, on
// both databases. The table below is compared with the declarations of the package.
import {
  approval,
  BatchHandle,
  createPawl,
  defineJob,
  defineLimit,
  defineSchedule,
  defineSignal,
  type Effects,
  FlowHandle,
  type JobContext,
  type JobWorker,
  type Pawl,
  type Tx,
  toFolder,
  typed,
} from 'pawl'
import { auditLimit } from 'pawl/audit'
import { createHttpApi, createToken, serveHttp } from 'pawl/http'
import { openPostgresStore } from 'pawl/postgres'
import { defineLifecycle, defineMachine } from 'pawl/rules'
import {
  defineRun,
  defineRunMachine,
  documentationRun,
  forkRun,
  httpSink,
  openFolderJournal,
  openRuns,
  openStoreJournal,
  type RunContext,
} from 'pawl/runs'
import { openSqliteStore } from 'pawl/sqlite'
import { jsonLogger, serveTelemetry } from 'pawl/telemetry'
import { createTestPawl, JobScript, runJob, testEnvironment } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type ApiExport, readApi } from '../../scripts/documents/api-model.ts'
import { LIFECYCLES } from '../../src/core/lifecycles/index.ts'
import { PLACES, type Place } from '../engine/processes/places.ts'
import { freshFolder } from '../processes/folder.ts'

const ping = defineSignal({ name: 'ping' })
const pinged = defineJob({ name: 'pinged', signals: [ping] })

/** A field that nothing knows. */
const MORE: object = { zzz: 1 }
const UNKNOWN = MORE as never
const id = '00000000-0000-7000-8000-000000000001'
const identity = { name: 'ada', reason: 'test' }
const client = { actor: 'client' } as const
const all = { all: true } as const
const BACKFILL = { from: new Date(0), to: new Date(1), ...MORE }
const MIGRATION = { lifecycle: 'standard', to: 1 }

interface Bench extends Place {
  readonly context: JobContext<unknown, Effects, never, true>
  readonly tx: Tx
  readonly run: RunContext
}

const echo = defineJob({ name: 'echo', input: typed<unknown>(), run: ({ input }) => input })
const standard = LIFECYCLES.find(({ name }) => name === 'standard') as never

const operator = ({ pawl }: Bench) => pawl.operator(identity)
/** Handles of what does not exist: a refusal comes before any look at the store. */
const flowOf = ({ pawl }: Bench) =>
  new FlowHandle(pawl.internals, { id, size: 0 }, false, { result: 0 })
const batchOf = ({ pawl }: Bench) =>
  new BatchHandle(pawl.internals, { id }, false, { definition: echo, names: [] })
const journal = async () => openFolderJournal({ path: freshFolder() })
const runs = async () => openRuns({ folder: freshFolder() })
const test = () => createTestPawl({ jobs: [echo] })

/** One call for each function and each object that it takes. */
const CALLS: Readonly<Record<string, (bench: Bench) => unknown>> = {
  'createPawl(options)': ({ store }) => createPawl({ store, ...MORE }),
  'defineJob(options)': () => defineJob({ name: 'x', ...MORE }),
  'defineSignal(options)': () => defineSignal({ name: 'x', ...MORE }),
  'defineLimit(options)': () => defineLimit({ name: 'x', concurrency: 1, ...MORE }),
  'defineSchedule(options)': () => defineSchedule({ name: 'x', job: echo, every: '1h', ...MORE }),
  'Schedules.list(options)': ({ pawl }) => pawl.schedules.list(UNKNOWN),
  'Schedules.history(options)': ({ pawl }) => pawl.schedules.history('s', UNKNOWN),
  'Schedules.backfill(options)': ({ pawl }) => pawl.schedules.backfill('s', BACKFILL),
  'JobDefinition.implement(options)': () => echo.implement(() => 1, UNKNOWN),
  'Pawl.enqueue(options)': ({ pawl }) => pawl.enqueue(echo, 1, UNKNOWN),
  'Pawl.enqueueMany(jobs)': ({ pawl }) => pawl.enqueueMany(echo, [{ input: 1, ...MORE }]),
  'Pawl.enqueueMany(options)': ({ pawl }) => pawl.enqueueMany(echo, [], UNKNOWN),
  'Pawl.operator(identity)': ({ pawl }) => pawl.operator({ ...identity, ...MORE }),
  'Pawl.retentionStatus(options)': ({ pawl }) => pawl.retentionStatus(UNKNOWN),
  'toFolder(options)': () => toFolder(freshFolder(), UNKNOWN),
  'Pawl.doctor(options)': ({ pawl }) => pawl.doctor(UNKNOWN),
  'Pawl.audit(filter)': ({ pawl }) => pawl.audit(UNKNOWN).next(),
  'Pawl.audit(options)': ({ pawl }) => pawl.audit({}, UNKNOWN).next(),
  'Pawl.pauseQueue(requester)': ({ pawl }) => pawl.pauseQueue('q', { ...client, ...MORE }),
  'Pawl.resumeQueue(requester)': ({ pawl }) => pawl.resumeQueue('q', { ...client, ...MORE }),
  'Pawl.limitQueue(limits)': ({ pawl }) => pawl.limitQueue('q', UNKNOWN),
  'Pawl.limitQueue(requester)': ({ pawl }) =>
    pawl.limitQueue('q', { maxDepth: 1 }, { ...client, ...MORE }),
  'Pawl.work(options)': ({ pawl }) => pawl.work({ jobs: [echo], ...MORE }),
  'Jobs.list(filter)': async ({ pawl }) => {
    for await (const _ of pawl.jobs.list(UNKNOWN)) return
  },
  'Jobs.list(options)': async ({ pawl }) => {
    for await (const _ of pawl.jobs.list({}, UNKNOWN)) return
  },
  'Jobs.count(filter)': ({ pawl }) => pawl.jobs.count(UNKNOWN),
  'Jobs.count(options)': ({ pawl }) => pawl.jobs.count({}, UNKNOWN),
  'JobHandle.result(options)': ({ pawl }) => pawl.job(id).result(UNKNOWN),
  'Signal.of(options)': async () => ping.of(1, UNKNOWN),
  'Pawl.signal(where)': ({ pawl }) => pawl.signal(pinged, { key: 'k', ...MORE } as never, ping, 1),
  'Pawl.signal(options)': ({ pawl }) => pawl.signal(pinged, { key: 'k' }, ping, 1, UNKNOWN),
  'JobHandle.signal(options)': ({ pawl }) => pawl.job(id).signal(ping, 1, UNKNOWN),
  'JobHandle.cancel(requester)': ({ pawl }) => pawl.job(id).cancel({ ...client, ...MORE }),
  'AttemptContext.enqueue(options)': ({ context }) => context.enqueue(echo, 1, UNKNOWN),
  'AttemptContext.throttled(options)': ({ context }) => context.throttled('x' as never, UNKNOWN),
  'WaitingContext.waitForSignal(options)': ({ context }) =>
    context.waitForSignal(ping as never, UNKNOWN),
  'WaitingContext.waitForApproval(options)': ({ context }) => context.waitForApproval(UNKNOWN),
  'WaitingContext.token(options)': async ({ context }) => context.token(ping as never, UNKNOWN),
  'WaitingContext.invoke(options)': ({ context }) => context.invoke('i', echo, 1, UNKNOWN),
  'WaitingContext.invokeMany(options)': ({ context }) =>
    context.invokeMany('i', echo, [1], UNKNOWN),
  'Pawl.flow(options)': ({ pawl }) => pawl.flow((f) => f.add(echo, 1), UNKNOWN),
  'Pawl.batch(options)': ({ pawl }) => pawl.batch(echo, [1], UNKNOWN),
  'FlowBuilder.add(options)': ({ pawl }) => pawl.flow((f) => f.add(echo, 1, UNKNOWN)),
  'FlowHandle.result(options)': (b) => flowOf(b).result(UNKNOWN),
  'FlowHandle.cancel(requester)': (b) => flowOf(b).cancel({ ...client, ...MORE }),
  'BatchHandle.cancel(requester)': (b) => batchOf(b).cancel({ ...client, ...MORE }),
  'BatchHandle.close(requester)': (b) => batchOf(b).close({ ...client, ...MORE }),
  'Flows.list(filter)': ({ pawl }) => pawl.flows.list(UNKNOWN),
  'Flows.list(page)': ({ pawl }) => pawl.flows.list({}, UNKNOWN),
  'Flows.nodes(options)': ({ pawl }) => pawl.flows.nodes(id, UNKNOWN),
  'Flows.cancel(requester)': ({ pawl }) => pawl.flows.cancel(id, { ...client, ...MORE }),
  'Flows.redrive(identity)': ({ pawl }) => pawl.flows.redrive(id, { ...identity, ...MORE }),
  'Limits.get(options)': ({ pawl }) => pawl.limits.get('queue/q', UNKNOWN),
  'Tx.enqueue(options)': ({ tx }) => tx.enqueue(echo, 1, UNKNOWN),
  ...Object.fromEntries(
    (
      [
        'cancel',
        'retry',
        'quarantine',
        'redrive',
        'discard',
        'approve',
        'reject',
        'submit',
        'copy',
      ] as const
    ).flatMap((verb) => [
      [`Operator.${verb}(selection)`, (b: Bench) => operator(b)[verb]({ ...all, ...MORE })],
      [`Operator.${verb}(options)`, (b: Bench) => operator(b)[verb](id, UNKNOWN)],
    ]) as [string, (bench: Bench) => unknown][],
  ),
  'Operator.cancelFlow(options)': (b) => operator(b).cancelFlow(id, UNKNOWN),
  'Operator.redriveFlow(options)': (b) => operator(b).redriveFlow(id, UNKNOWN),
  'Operator.signalMany(selection)': (b) => operator(b).signalMany({ ...all, ...MORE }, ping, 1),
  'Operator.signalMany(options)': (b) => operator(b).signalMany(id, ping, 1, UNKNOWN),
  'Operator.force(selection)': (b) => operator(b).force({ ...all, ...MORE }, 'failed'),
  'Operator.force(options)': (b) => operator(b).force(id, 'failed', UNKNOWN),
  'Operator.reschedule(selection)': (b) => operator(b).reschedule({ ...all, ...MORE }, new Date()),
  'Operator.reschedule(options)': (b) => operator(b).reschedule(id, new Date(), UNKNOWN),
  'Operator.prioritise(selection)': (b) => operator(b).prioritise({ ...all, ...MORE }, 1),
  'Operator.prioritise(options)': (b) => operator(b).prioritise(id, 1, UNKNOWN),
  'Operator.retryEffects(selection)': (b) => operator(b).retryEffects({ ...all, ...MORE }),
  'Operator.retryEffects(options)': (b) => operator(b).retryEffects(all, UNKNOWN),
  'Operator.migrate(selection)': (b) => operator(b).migrate({ ...MIGRATION, ...MORE }),
  'Operator.migrate(options)': (b) => operator(b).migrate(MIGRATION, UNKNOWN),
  'Operator.runRetention(options)': (b) => operator(b).runRetention(UNKNOWN),
  'Operator.setLimit(options)': (b) => operator(b).setLimit('queue/q', UNKNOWN),
  'Operator.resetLimit(options)': (b) => operator(b).resetLimit('queue/q', UNKNOWN),
  'Operator.backfillSchedule(options)': (b) => operator(b).backfillSchedule('s', BACKFILL),
  'auditLimit(options)': ({ pawl: { store } }) => auditLimit(store, 'queue/q', UNKNOWN),
  'Operator.limitQueue(limits)': (b) => operator(b).limitQueue('q', UNKNOWN),
  'Doctor.check(options)': ({ pawl }) => pawl.doctor().check(UNKNOWN),
  'Doctor.repair(options)': ({ pawl }) =>
    pawl.doctor().repair({ operator: 'ada', reason: 'test', ...MORE }),
  'Store.enqueue(items)': async ({ pawl: { store } }) => {
    const command = { jobId: id, type: 'echo', queue: 'default' }
    const item = { lifecycle: standard, command, input: 'null', ...MORE }
    const [answer] = await store.enqueue([item])
    if (answer?.kind === 'rejected') throw answer.error
  },
  'Store.enqueue(options)': ({ pawl: { store } }) => store.enqueue([], UNKNOWN),
  'Store.claim(request)': ({ pawl: { store } }) =>
    store.claim({ worker: 'w', limit: 1, leaseMs: 1000, start: true, ...MORE }),
  'Store.settle(next)': ({ pawl: { store } }) =>
    store.settle([], { worker: 'w', limit: 1, leaseMs: 1000, start: true, ...MORE }),
  'Store.claimEffects(request)': ({ pawl: { store } }) =>
    store.claimEffects({ limit: 1, leaseMs: 1000, ...MORE }),
  'Store.listEffects(filter)': ({ pawl: { store } }) => store.listEffects(UNKNOWN),
  'Store.listEffects(options)': ({ pawl: { store } }) => store.listEffects({}, UNKNOWN),
  'Store.retryEffects(requester)': ({ pawl: { store } }) =>
    store.retryEffects([], { actor: 'operator', operator: 'ada', note: 'x', ...MORE }),
  'Store.cancel(requester)': ({ pawl: { store } }) => store.cancel([], { ...client, ...MORE }),
  'Store.prune(request)': ({ pawl: { store } }) =>
    store.prune({ endedBefore: 0, limit: 1, ...MORE }),
  'Store.list(filter)': ({ pawl: { store } }) => store.list(UNKNOWN),
  'Store.list(options)': ({ pawl: { store } }) => store.list({}, UNKNOWN),
  'Store.listQueueRecords(filter)': ({ pawl: { store } }) => store.listQueueRecords(UNKNOWN),
  'Store.listQueueRecords(options)': ({ pawl: { store } }) => store.listQueueRecords({}, UNKNOWN),
  'Store.audit(filter)': ({ pawl: { store } }) => store.audit(UNKNOWN),
  'Store.audit(options)': ({ pawl: { store } }) => store.audit({}, UNKNOWN),
  'openSqliteStore(options)': () => openSqliteStore({ path: ':memory:', ...MORE }),
  'openPostgresStore(options)': () =>
    openPostgresStore({ connectionString: 'postgres://127.0.0.1:1/none', ...MORE }),
  'createHttpApi(options)': ({ pawl }) => createHttpApi({ pawl, ...MORE }),
  'createToken(request)': ({ pawl }) => createToken(pawl, UNKNOWN),
  'serveHttp(options)': ({ pawl }) => serveHttp({ pawl, ...MORE }),
  'jsonLogger(options)': () => jsonLogger(UNKNOWN),
  'serveTelemetry(options)': () => serveTelemetry(UNKNOWN),
  'defineMachine(spec)': () => defineMachine({ ...LAMP, ...MORE }),
  'defineMachine(spec.states)': () =>
    defineMachine({ ...LAMP, states: { on: { meaning: 'Lit.', terminal: true, ...MORE } } }),
  'defineLifecycle(spec)': () => defineLifecycle({ ...MORE, name: 'lamp' } as never),
  'defineRunMachine(spec)': () => defineRunMachine({ ...documentationRun, ...MORE }),
  'defineRun(options)': () => defineRun(UNKNOWN),
  'openRuns(options)': () => openRuns({ folder: freshFolder(), ...MORE }),
  'openFolderJournal(options)': () => openFolderJournal({ path: freshFolder(), ...MORE }),
  'openStoreJournal(options)': ({ pawl: { store } }) => openStoreJournal({ store, ...MORE }),
  'httpSink(options)': () => httpSink({ url: 'http://127.0.0.1:1', ...MORE }),
  'forkRun(fork)': async () =>
    forkRun(await journal(), { from: 'a', seq: 1, runId: 'b', ...MORE }, testEnvironment()),
  'Runs.start(options)': async () => (await runs()).start({} as never, UNKNOWN),
  'Runs.startOrResume(options)': async () => (await runs()).startOrResume({} as never, UNKNOWN),
  'Runs.resume(options)': async () => (await runs()).resume('r', UNKNOWN),
  'Runs.list(options)': async () => (await runs()).list(UNKNOWN),
  'Runs.events(range)': async () => {
    for await (const _ of (await runs()).events('r', UNKNOWN)) return
  },
  'Runs.explain(options)': async () => (await runs()).explain('r', UNKNOWN),
  'RunContext.work(options)': ({ run }) => run.work('k', UNKNOWN, () => 1),
  'RunContext.each(options)': ({ run }) => run.each([1], { key: String, ...MORE }, () => 1),
  'RunContext.inputFolder(folder)': ({ run }) => run.inputFolder('f', { path: '.', ...MORE }),
  'ArtifactHandle.write(options)': ({ run }) => run.artifact('a').write('x', UNKNOWN),
  'ArtifactHandle.writeJson(options)': ({ run }) => run.artifact('a').writeJson(1, UNKNOWN),
  'Issues.open(issue)': ({ run }) =>
    run.issue.open('i', { severity: 'warning', message: 'm', ...MORE }),
  'createTestPawl(options)': () => createTestPawl({ jobs: [echo], ...MORE }),
  'runJob(options)': () => runJob(echo, 1, UNKNOWN),
  'testEnvironment(options)': () => testEnvironment(UNKNOWN),
  'JobScript.constructor(options)': () => new JobScript(standard, UNKNOWN),
  'JobScript.claim(options)': () => new JobScript(standard).claim(UNKNOWN),
  'TestPawl.drain(options)': async () => (await test()).drain(UNKNOWN),
  'TestPawl.fastForward(options)': async () => (await test()).fastForward(UNKNOWN),
}

const LAMP = {
  name: 'lamp',
  version: 1,
  initial: 'on',
  sameState: 'noop',
  states: { on: { meaning: 'Lit.', terminal: true } },
  edges: [],
} as const

/** The context of a handler, of its commit and of a node, kept so that calls can be made in it. */
async function withContexts(place: Place, use: (bench: Bench) => Promise<void>): Promise<void> {
  let failure: unknown
  const job = defineJob({
    name: 'bench',
    signals: [ping, approval],
    run: async (context) => {
      const note = (error: unknown) => {
        failure = error
      }
      await use({ ...place, context } as Bench).catch(note)
      await context.commit((tx) => use({ ...place, tx } as Bench).catch(note))
    },
  })
  const pawl: Pawl = await createPawl({ store: place.store, jobs: [job] })
  const worker: JobWorker = await pawl.work()
  onTestFinished(() => pawl.close())
  const handle = await place.pawl.enqueue(job, null)
  await handle.result({ timeout: '20s' })
  await worker.stop()
  if (failure !== undefined) throw failure
}

const REFUSED = {
  code: expect.stringMatching(/^E_(COMMAND|DEFINITION)_INVALID$/),
  message: expect.stringContaining('zzz'),
}

async function refusalOf(call: () => unknown): Promise<unknown> {
  try {
    await call()
  } catch (error) {
    return error
  }
  return 'accepted'
}

describe.each(PLACES)('on $name', ({ place }) => {
  const isInside = (name: string) =>
    /^(AttemptContext|WaitingContext|Tx|RunContext|ArtifactHandle|Issues)\./.test(name)

  it('every function refuses a field that it does not know', { timeout: 60_000 }, async () => {
    const bench = { ...(await place()) } as Bench
    const accepted: [string, unknown][] = []
    for (const [name, call] of Object.entries(CALLS)) {
      if (isInside(name)) continue
      const refusal = await refusalOf(() => call(bench))
      if (!expect.objectContaining(REFUSED).asymmetricMatch(refusal)) accepted.push([name, refusal])
    }
    expect(accepted).toEqual([])
    expect((await bench.pawl.store.list({})).items).toEqual([])
  })

  it('a known field of another type is refused', { timeout: 60_000 }, async () => {
    const { pawl, store } = await place()
    const wrong: Readonly<Record<string, () => unknown>> = {
      run: () => defineJob({ name: 'x', run: 'abc' as never }),
      output: () => defineJob({ name: 'x', output: 5 as never }),
      notify: () => defineJob({ name: 'x', notify: 'yes' as never }),
      priority: () => pawl.enqueue(echo, 1, { priority: 'high' as never }),
      tags: () => pawl.enqueue(echo, 1, { tags: 'a' as never }),
      jobId: () => pawl.enqueue(echo, 1, { jobId: 5 as never }),
      runAt: () => pawl.enqueue(echo, 1, { runAt: '2026-01-01' as never }),
      delay: () => pawl.enqueue(echo, 1, { delay: {} as never }),
      hold: () => pawl.enqueue(echo, 1, { hold: 'yes' as never }),
      jobs: () => createPawl({ store, jobs: echo as never }),
      logger: () => createPawl({ store, logger: 'console' as never }),
      payloadBytesMax: () => createPawl({ store, payloadBytesMax: '1' as never }),
      storeTimeout: () => createPawl({ store, storeTimeout: true as never }),
      concurrency: () => pawl.work({ jobs: [echo], concurrency: '3' as never }),
      lease: () => pawl.work({ jobs: [echo], lease: [] as never }),
      onStuck: () => pawl.work({ jobs: [echo], onStuck: 'wait' as never }),
      full: () => pawl.doctor().check({ full: 'yes' as never }),
      'thresholds.dueMs': () => pawl.doctor({ thresholds: { dueMs: 'x' as never } }),
      limit: () => pawl.store.list({}, { limit: '5' as never }),
      start: () =>
        pawl.store.claim({ worker: 'w', limit: 1, leaseMs: 1000, start: 'yes' as never }),
      timeout: () => pawl.job(id).result({ timeout: {} as never }),
      dryRun: () => pawl.operator(identity).cancel(id, { dryRun: 'no' as never }),
      worker: () => openRuns({ folder: freshFolder(), worker: 5 as never }),
      url: () => httpSink({ url: 'nowhere' }),
      attempt: () => runJob(echo, 1, { attempt: 'x' as never }),
    }
    const accepted: [string, unknown][] = []
    for (const [field, call] of Object.entries(wrong)) {
      const refusal = await refusalOf(call)
      const expected = { ...REFUSED, message: expect.stringContaining(field) }
      if (!expect.objectContaining(expected).asymmetricMatch(refusal)) {
        accepted.push([field, refusal])
      }
    }
    expect(accepted).toEqual([])
  })

  it('so does every function of a handler and of its commit', { timeout: 60_000 }, async () => {
    const refusals: Record<string, unknown> = {}
    const names = Object.keys(CALLS).filter((name) =>
      /^(AttemptContext|WaitingContext|Tx)\./.test(name),
    )
    await withContexts(await place(), async (bench) => {
      const owner = bench.tx === undefined ? 'Context.' : 'Tx.'
      for (const name of names.filter((one) => one.includes(owner))) {
        refusals[name] = await refusalOf(() => CALLS[name]?.(bench))
      }
    })
    expect(Object.keys(refusals)).toEqual(names)
    for (const name of names) expect(refusals[name], name).toMatchObject(REFUSED)
  })
})

it('so does every function of a node of a run', { timeout: 60_000 }, async () => {
  const names = Object.keys(CALLS).filter((name) => /^(RunContext|Artifact|Issues)/.test(name))
  const refusals: Record<string, unknown> = {}
  const machine = defineRunMachine({
    machine: {
      name: 'short',
      version: 1,
      initial: 'BEGIN',
      sameState: 'refuse',
      states: {
        BEGIN: { meaning: 'Begins.', stable: true },
        END: { meaning: 'Ended.', terminal: true },
        FAILED: { meaning: 'Failed.', terminal: true },
        CANCELLED: { meaning: 'Cancelled.', terminal: true },
      },
      edges: [
        { from: 'BEGIN', to: 'END', on: ['finish'] },
        { from: 'BEGIN', to: 'FAILED', on: ['fail'] },
        { from: 'BEGIN', to: 'CANCELLED', on: ['cancel'] },
      ],
    },
    failed: 'FAILED',
    cancelled: 'CANCELLED',
  })
  const definition = defineRun({
    name: 'short',
    machine,
    nodes: {
      BEGIN: async (run) => {
        for (const name of names) {
          refusals[name] = await refusalOf(() => CALLS[name]?.({ run } as unknown as Bench))
        }
        return 'END'
      },
    },
  })
  const opened = await openRuns({ folder: freshFolder(), runs: [definition] })
  onTestFinished(() => opened.close())
  const handle = await opened.start(definition)
  await handle.result()
  for (const name of names) expect(refusals[name], name).toMatchObject(REFUSED)
})

/** Parameters that are objects of options by their names. */
const OBJECTS =
  /^(options|filter|request|next|requester|selection|identity|range|spec|limits|fork|folder)$/
/** Interfaces whose methods users call. */
const CALLED = [
  'Store',
  'AttemptContext',
  'WaitingContext',
  'JobDefinition',
  'Tx',
  'RunContext',
  'ArtifactHandle',
]

/** What these take are data that a rule judges, not options. */
const DATA = [
  'freshnessOf(request)',
  'isUnchanged(request)',
  'migratedState(next)',
  'move(request)',
  'JobScript.applyCommand(requester)',
  'JobScript.migrate(next)',
]

/** `Owner.method(parameter)` for each such parameter of an export. */
function parametersOf({ name, kind, declarations }: ApiExport): string[] {
  const text = declarations.join('\n')
  if (kind === 'function') return namedIn(text).map((parameter) => `${name}(${parameter})`)
  if (kind !== 'class' && !CALLED.includes(name)) return []
  const methods = [...text.matchAll(/^ {2}(?:readonly )?(\w+)(?:: )?(?:<.*?>)?\((.*)$/gm)]
  return methods.flatMap(([, method, rest = '']) =>
    namedIn(rest).map((parameter) => `${name}.${method}(${parameter})`),
  )
}

function namedIn(text: string): string[] {
  return [...text.matchAll(/(\w+)\??: /g)]
    .map(([, one = '']) => one)
    .filter((one) => OBJECTS.test(one))
}

it('the table has every function that the package declares', () => {
  const declared = readApi()
    .flatMap(({ exports }) => exports)
    .filter(({ parents, name }) => parents.length === 0 && !/Error$|^Retry|^Terminal/.test(name))
    .flatMap(parametersOf)
  expect(declared.length).toBeGreaterThan(50)
  const missing = [...new Set(declared)].filter((name) => CALLS[name] === undefined)
  expect(missing.sort()).toEqual([...DATA].sort())
})
