/** The server itself, workers, numbers, machines and the doctor. */
import { NameUnknown } from '../../engine/errors.ts'
import { findMachine, knownMachines } from '../../engine/machines.ts'
import { openStoreJournal } from '../../runs/journal/store/journal.ts'
import { recordsOf } from '../../runs/journal/verify.ts'
import { versionsOf } from '../../stores/versions.ts'
import { RequestRefused } from '../errors.ts'
import { Reply } from '../exchange.ts'
import { DRY_RUN, operatorName, operatorOf, WHO, WHY } from '../operating.ts'
import { ADMIN, READ, type Route, type RouteCall, SHARED_COUNTS } from '../route.ts'
import { flag, list, map, oneOf, open, record, ref, text, time, whole } from '../schema.ts'

const READY_MS = 2000

/** The store answers a small read in time. Every open store is migrated. */
async function ready({ pawl }: RouteCall): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const refused = new RequestRefused(503, 'The store does not answer', 'Look at the database.')
    timer = setTimeout(() => reject(refused), READY_MS)
  })
  try {
    await Promise.race([pawl.store.tailEnd(), late])
    return { status: 'ready' }
  } finally {
    clearTimeout(timer)
  }
}

async function stats({ pawl, census }: RouteCall): Promise<unknown> {
  const { counts, queues } = await census()
  const { lanes, ended } = counts
  const workers = await pawl.workers.list()
  return {
    now: pawl.store.now(),
    lanes,
    ended,
    queues: queues.length,
    paused: queues.filter(({ pausedAt }) => pausedAt !== undefined).length,
    workers: workers.filter(({ live }) => live).length,
  }
}

/** Lifecycles of the store and of this process, and machines of runs that it can work on. */
async function machinesIn({ pawl, runs, query }: RouteCall) {
  const { lifecycles } = pawl.internals
  const { stored } = await versionsOf(pawl.store, lifecycles)
  const { definitions } = await runs()
  const ofRuns = [...definitions.values()].map(({ machine }) => machine.machine)
  const known = knownMachines([...lifecycles, ...stored], ofRuns)
  return known.filter(({ kind }) => query.kind === undefined || kind === query.kind)
}

async function listMachines(call: RouteCall): Promise<unknown> {
  const items = (await machinesIn(call)).map(({ kind, machine }) => {
    const { name: own, version, states, edges } = machine
    return { name: own, kind, version, states: states.size, edges: edges.length }
  })
  return { items }
}

async function showMachine(call: RouteCall): Promise<unknown> {
  const { name: wanted = '' } = call.params
  const known = await machinesIn(call)
  const found = findMachine(known, wanted, call.query.version)
  if (found === undefined) {
    throw new NameUnknown('machine', wanted, [...new Set(known.map((one) => one.machine.name))])
  }
  const { kind, machine, roles } = found
  const { name: own, version, initial, edges } = machine
  const states = [...machine.states].map(([state, spec]) => {
    const role = roles?.get(state)
    return [state, { ...spec, ...(role !== undefined && { role }) }] as const
  })
  return { name: own, kind, version, initial, states: Object.fromEntries(states), edges }
}

/** One at a time: it may take long. */
function migrate(call: RouteCall): Promise<unknown> {
  const { to, dryRun = false } = call.body
  const selection = { lifecycle: call.params.name as string, to }
  return call.examinations.hold(() => {
    return operatorOf(call).migrate(selection, { dryRun, signal: call.signal })
  })
}

function doctorOf({ pawl }: RouteCall) {
  const { ids } = pawl.internals.environment
  const author = { actor: 'doctor', trace_id: ids.next(), span_id: ids.next() }
  const runs = [recordsOf(openStoreJournal({ store: pawl.store }), 'the store', author)]
  return pawl.doctor({ runs })
}

const check = (isFull: boolean | undefined) => (call: RouteCall) =>
  call.examinations.hold(() => {
    const full = isFull ?? call.body.full ?? false
    return doctorOf(call).check({ full, signal: call.signal })
  })

function repair(call: RouteCall): Promise<unknown> {
  return call.examinations.hold(async () => {
    const doctor = doctorOf(call)
    const { reason } = call.body
    const { signal } = call
    const repaired = await doctor.repair({ operator: operatorName(call), reason, signal })
    return { repaired, after: await doctor.check({ full: true, signal }) }
  })
}

const KINDS = ['job', 'execution', 'worker', 'run']
const KIND = oneOf(KINDS)
const KIND_ASKED = oneOf(KINDS, 'machines of this kind: a lifecycle and a run may share a name')
const PLACE = record({ version: whole(), state: text() })

const SERVER: readonly Route[] = [
  {
    method: 'GET',
    path: '/healthz',
    operation: 'isAlive',
    summary: 'Says that the process answers.',
    roles: 'public',
    answer: record({ status: text() }),
    run: async () => ({ status: 'ok' }),
  },
  {
    method: 'GET',
    path: '/readyz',
    operation: 'isReady',
    summary: 'Says that the store is migrated and answers; 503 otherwise.',
    roles: 'public',
    answer: record({ status: text() }),
    run: ready,
  },
  {
    method: 'GET',
    path: '/metrics',
    operation: 'readMetrics',
    summary: 'Measurements of this process and of the store, for Prometheus.',
    roles: READ,
    answer: { media: 'text/plain', says: 'the text format of Prometheus, version 0.0.4' },
    run: async ({ metrics }) =>
      new Reply(await metrics(), { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }),
  },
  {
    method: 'GET',
    path: '/openapi.json',
    operation: 'readDocument',
    summary: 'This document.',
    roles: READ,
    answer: open('an OpenAPI 3.1 document'),
    run: async ({ document, basePath }) =>
      new Reply(document(basePath), { 'content-type': 'application/json' }),
  },
  {
    method: 'GET',
    path: '/api/v1/whoami',
    operation: 'whoAmI',
    summary: 'Says under which name and with which roles the caller acts.',
    roles: ['read', 'operate', 'work'],
    answer: record({ name: text(), roles: list(text()) }),
    run: async ({ identity: { name: own, roles } }) => ({ name: own, roles }),
  },
]

export const routes: readonly Route[] = [
  ...SERVER,
  {
    method: 'GET',
    path: '/api/v1/workers',
    operation: 'listWorkers',
    summary: 'Lists workers of all processes, also those that are gone.',
    roles: READ,
    answer: record({ items: list(ref('Worker')) }),
    run: async ({ pawl }) => ({ items: await pawl.workers.list() }),
  },
  {
    method: 'GET',
    path: '/api/v1/stats',
    operation: 'readStats',
    summary: 'Counts jobs by lane and by final state, queues and live workers.',
    details: SHARED_COUNTS,
    roles: READ,
    answer: record({
      now: time('the time of the store'),
      lanes: ref('Lanes'),
      ended: map(whole()),
      queues: whole(),
      paused: whole(),
      workers: whole(),
    }),
    run: stats,
  },
  {
    method: 'GET',
    path: '/api/v1/machines',
    operation: 'listMachines',
    summary: 'Lists the machines: lifecycles, and those of executions, workers and runs.',
    roles: READ,
    query: { kind: KIND_ASKED },
    answer: record({
      items: list(
        record({ name: text(), kind: KIND, version: whole(), states: whole(), edges: whole() }),
      ),
    }),
    run: listMachines,
  },
  {
    method: 'GET',
    path: '/api/v1/machines/{name}',
    operation: 'showMachine',
    summary: 'Shows the states and edges of a machine.',
    roles: READ,
    query: {
      version: whole('this version; the latest if absent', { minimum: 1 }),
      kind: KIND_ASKED,
    },
    errors: [404],
    answer: record({
      name: text(),
      kind: KIND,
      version: whole(),
      initial: text(),
      states: map(open('a state')),
      edges: list(open('an edge')),
    }),
    run: showMachine,
  },
  {
    method: 'POST',
    path: '/api/v1/machines/{name}/migrate',
    operation: 'migrateJobs',
    summary: 'Migrates live jobs of earlier versions to a version of their lifecycle.',
    details: 'Running jobs finish their attempt under their version: send the request again.',
    roles: ADMIN,
    body: record(
      { ...WHY, to: whole('the target version', { minimum: 1 }) },
      { ...WHO, ...DRY_RUN },
    ),
    lasts: true,
    errors: [404, 409],
    answer: record({
      dryRun: flag(),
      matched: whole('live jobs of earlier versions'),
      done: whole(),
      running: whole('jobs that finish their attempt first'),
      refused: whole(),
      moves: list(record({ from: PLACE, to: PLACE, jobs: whole() })),
      refusals: list(record({ id: text(), code: text(), message: text(), hint: text() }), {
        description: 'the first of them',
      }),
      more: flag('whether jobs may be left, because the request was ended'),
    }),
    run: migrate,
  },
  {
    method: 'POST',
    path: '/api/v1/doctor/check',
    operation: 'checkStore',
    summary: 'Checks the store against every promise, for two seconds or in full.',
    roles: READ,
    body: record({}, { full: flag('check every job, and the file itself') }),
    lasts: true,
    answer: ref('Examination'),
    run: check(undefined),
  },
  {
    method: 'POST',
    path: '/api/v1/doctor/plan',
    operation: 'planRepair',
    summary: 'Checks everything, and reports what a repair would change. Changes nothing.',
    roles: READ,
    body: record({}),
    lasts: true,
    answer: ref('Examination'),
    run: check(true),
  },
  {
    method: 'POST',
    path: '/api/v1/doctor/apply',
    operation: 'repairStore',
    summary: 'Repairs the store, and checks it again.',
    roles: ADMIN,
    body: record(WHY, WHO),
    lasts: true,
    answer: record({ repaired: ref('Examination'), after: ref('Examination') }),
    run: repair,
  },
]
