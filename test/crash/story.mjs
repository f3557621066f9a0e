// A process with a story: it calls every verb of the store, one after the other, tells the parent
// of each answer that it got, and kills itself at the crash point with the given number. Its time,
// chance and ids are the same in every run, so two runs differ in nothing but where they end.
import { appendFileSync } from 'node:fs'
import { openSqliteStore } from 'pawl/sqlite'
import {
  ADDED,
  BATCH,
  invokeBy,
  itemsAt,
  openUsers,
  say,
  standingEnvironment,
  userWork,
  waitsAt,
} from './common.mjs'

const { path, start, archive, crashAt, snapshots } = JSON.parse(process.argv[2])

let passed = 0
let step = 'open'

/** Every place where a process may die. */
function crashPoint(name) {
  if (snapshots !== undefined) say({ kind: 'point', step, name })
  if (passed++ === crashAt) process.kill(process.pid, 'SIGKILL')
}

let lastId = 0
const standing = standingEnvironment(start)
const { clock } = standing
const environment = {
  ...standing,
  random: { next: () => 0.5 },
  ids: { next: () => `00000000-0000-7000-8000-${String(++lastId).padStart(12, '0')}` },
  crashPoint,
}
const store = await openSqliteStore({ path, environment })
const users = openUsers(path)
const items = itemsAt(start)
const { signals, waits } = waitsAt(start)
const held = new Map()
const effects = []

const OPERATOR = { actor: 'operator', operator: 'ann', note: 'looked into it' }
const CLIENT = { actor: 'client' }
const idOf = (type) => items.batch.find(({ command }) => command.type === type).command.jobId
const fenceOf = ({ job }) => ({ attempt: job.attempt, claim: job.execution.claim })
const failure = { class: 'retryable', kind: 'transient', message: 'not now' }
const request = (types, start = true) => ({
  worker: 'worker-1',
  types,
  limit: 100,
  leaseMs: 30_000,
  start,
})

/** What the holder of a job reports of it. */
function report(type, kind, rest = {}, payload = undefined) {
  const holding = held.get(type)
  const command = { kind, fence: fenceOf(holding), ...rest }
  return { held: holding, command, ...(payload !== undefined && { payload }) }
}

function keep(claimed) {
  for (const one of claimed) held.set(one.job.type, one)
  return claimed.map(({ job }) => job.id)
}

async function joinUsersTransaction() {
  users.exec('BEGIN IMMEDIATE')
  crashPoint('enqueueTx.begun')
  users.exec(`INSERT INTO user_notes VALUES ('joined')`)
  await store.enqueue(items.joined, { tx: users })
  crashPoint('enqueueTx.written')
  users.exec('COMMIT')
  crashPoint('enqueueTx.committed')
}

/** A row of the user's own and a job, in a transaction that the store has opened. */
function transact() {
  return store.transaction(async (tx) => {
    await tx.query(`INSERT INTO user_notes VALUES ('transacted')`)
    await store.enqueue(items.transacted, { tx })
  })
}

async function deliver() {
  effects.push(...(await store.claimEffects({ limit: 10, leaseMs: 30_000 })))
  return effects.length
}

/** The first delivery succeeds; the second is not known to have arrived. */
async function settleDeliveries() {
  for (const { key, payload } of effects) say({ kind: 'delivered', path, key, payload })
  const [first, second] = effects
  const runAt = clock.now() + 1000
  return store.settleEffects([
    { kind: 'delivered', effect: first },
    { kind: 'retry', effect: second, runAt, error: 'no answer' },
  ])
}

const RUNNING = ['plain', 'effectful', 'failing', 'releasing', 'suspending', 'honoured', 'crashing']
const SILENT = ['silent-hardened', 'silent-leased']

const AWAITED = ['silent-member-1', 'silent-member-2', 'silent-child']

const STRICT = ['silent-lined-1', 'silent-lined-2', 'silent-lined-3']
const TURNS = [
  'silent-turn-a1',
  'silent-turn-a2',
  'silent-turn-b1',
  'silent-turn-b2',
  'silent-turn-b3',
]
const turns = (limit) => ({ ...request(TURNS), limit, queues: ['turns'] })

/** Keeps what was claimed, which must be these types. */
function keepOnly(types, claimed) {
  const got = claimed.map(({ job }) => job.type)
  if (got.sort().join() !== types.join()) throw new Error(`claimed ${got}, not ${types}`)
  return keep(claimed)
}

async function settleAndClaim(type, next, asked) {
  const { claimed } = await store.settle([report(type, 'commit', {}, '"done"')], asked)
  return keepOnly(next, claimed)
}

const EVERY_MS = 10_000
const SCHEDULE = {
  name: 'tick',
  input: 'null',
  origin: 'code',
  rules: {
    timing: { kind: 'every', everyMs: EVERY_MS },
    overlap: 'allowAll',
    catchUp: { mode: 'latest', withinMs: 86_400_000 },
    jitterMs: 0,
    pauseOnFailure: false,
    job: { type: 'ticked', queue: 'ticks', lifecycle: 'standard', lifecycleVersion: 2 },
  },
}
const ticksOf = () => ({ next: (after) => (Math.floor(after / EVERY_MS) + 1) * EVERY_MS })
const PASSED = { from: start, to: start + 2 * EVERY_MS, overlap: 'allowAll', dryRun: false }

/** The story: each step is one transaction. A number moves the clock instead. */
const story = [
  ['rotate', () => store.limits.declare([{ name: 'group/turns', max: null }])],
  ['batch', () => store.enqueue(items.batch)],
  [
    'group',
    () =>
      Promise.all([
        store.enqueue(items.group),
        store.enqueue(items.batch.slice(0, 2)),
        store.reportWorker({ id: 'worker-1', state: 'polling', info: '{}' }),
      ]),
  ],
  ['joined', joinUsersTransaction],
  ['transacted', transact],
  ['report', () => store.reportWorker({ id: 'worker-2', state: 'polling', info: '{}' })],
  ['forget', () => store.removeWorker('worker-2')],
  ['submit', () => store.applyCommand([idOf('held-back')], { kind: 'submit' }, CLIENT)],
  ['resume', () => store.resumeQueue('side', OPERATOR)],
  ['pause', () => store.pauseQueue('side', OPERATOR)],
  ['limit', () => store.limitQueue('narrow', { maxWaitMs: 60_000 })],
  ['put-schedule', () => store.schedules.put(SCHEDULE, ticksOf, CLIENT)],
  ['lease', async () => keep(await store.claim(request(['stepper'], false)))],
  ['start', () => store.settle([report('stepper', 'start')])],
  ['step', () => store.settle([report('stepper', 'step', { name: 'one', n: 1 }, '"first"')])],
  ['claim', async () => keep(await store.claim(request([...RUNNING, ...SILENT, 'task'])))],
  [
    'fuse',
    async () => {
      const { claimed } = await store.settle(
        [
          report('failing', 'fail', { failure }),
          report('releasing', 'release'),
          report('suspending', 'suspend', { runAt: clock.now() + 5000 }),
          ...SILENT.map((type) => report(type, 'commit', {}, '"silent"')),
        ],
        request(['fused']),
      )
      return keep(claimed)
    },
  ],
  // One at a time, in order; the second job is claimed with the report of the first.
  ['claim-strict', async () => keepOnly(['silent-lined-1'], await store.claim(request(STRICT)))],
  ['next-strict', () => settleAndClaim('silent-lined-1', ['silent-lined-2'], request(STRICT))],
  // a has the weight 1 and b the weight 2; a2 is left to its lease, b2 is given back.
  [
    'claim-turns',
    async () => keepOnly(['silent-turn-a1', 'silent-turn-b1'], await store.claim(turns(2))),
  ],
  [
    'next-turn',
    () => settleAndClaim('silent-turn-a1', ['silent-turn-a2', 'silent-turn-b2'], turns(2)),
  ],
  ['release-turn', () => store.settle([report('silent-turn-b2', 'release')])],
  ['cancel-turn', () => store.cancel([idOf('silent-turn-b3')], CLIENT)],
  ['commit', () => commit('plain')],
  ['commit-effects', () => commit('effectful')],
  ['take-effects', deliver],
  ['settle-effects', settleDeliveries],
  ['retry-effect', () => store.retryEffects([effects[1].key], OPERATOR)],
  ['cancel', () => store.cancel([idOf('dropped'), idOf('honoured')], CLIENT)],
  ['claim-waiting', async () => keep(await store.claim(request(['waiting'])))],
  ['signal-early', () => store.waits.signal([idOf('waiting')], signals[0], CLIENT)],
  ['receive', () => wait(waits[0])],
  ['wait', () => wait(waits[1])],
  ['signal', () => store.waits.signal([idOf('waiting')], signals[1], CLIENT)],
  ['flow', () => store.flows.create(BATCH)],
  ['flow-add', () => store.flows.add(BATCH.id, ADDED, { at: BATCH.nodes.length })],
  ['flow-close', () => store.flows.close(BATCH.id, CLIENT)],
  ['claim-asking', async () => keep(await store.claim(request(['asking'])))],
  ['invoke', () => store.flows.invoke(invokeBy(held.get('asking')))],
  ['claim-awaited', async () => keep(await store.claim(request(AWAITED)))],
  ['end-awaited', () => store.settle(AWAITED.map((type) => report(type, 'commit', {}, '1')))],
  ['wake', () => store.flows.wake(100)],
  ['beat', () => store.heartbeat(['stepper', 'honoured'].map(beatOf), 30_000)],
  ['honour', () => store.settle([report('honoured', 'cancel')])],
  60_001,
  ['promote', () => store.promote(100)],
  ['recover', () => store.recover(100)],
  ['shed', () => store.shed(100)],
  [
    'park',
    () => store.applyCommand([idOf('parked'), idOf('discarded')], { kind: 'park' }, OPERATOR),
  ],
  ['redrive', () => store.applyCommand([idOf('parked')], { kind: 'redrive' }, OPERATOR)],
  ['discard', () => store.applyCommand([idOf('discarded')], { kind: 'discard' }, OPERATOR)],
  ['fire', () => store.schedules.fire(10, ticksOf)],
  ['run-schedule', () => store.schedules.run('tick', OPERATOR)],
  ['pause-schedule', () => store.schedules.pause('tick', OPERATOR)],
  ['resume-schedule', () => store.schedules.resume('tick', ticksOf, OPERATOR)],
  ['backfill', () => store.schedules.backfill('tick', PASSED, ticksOf, OPERATOR)],
  ['remove-schedule', () => store.schedules.remove('tick', ticksOf, OPERATOR)],
  ['seal', () => store.seals.make()],
  [
    'sweep',
    () => {
      const ended = { outcome: 'succeeded', endedBefore: clock.now(), keysMs: 1 }
      return store.retention.sweep({ ...ended, limit: 2, archive: archiveLines })
    },
  ],
  60_001,
  ['free-keys', () => store.retention.freeKeys(10)],
  ['prune', () => store.prune({ endedBefore: clock.now(), limit: 100, archive: archiveLines })],
]

function wait(own) {
  const holding = held.get('waiting')
  return store.waits.wait({ id: holding.job.id, fence: fenceOf(holding), wait: own })
}

function beatOf(type) {
  return { ref: held.get(type).ref, fence: fenceOf(held.get(type)) }
}

function commit(type) {
  const holding = held.get(type)
  return store.commit(
    holding,
    userWork(holding.job, () => crashPoint('commit.working')),
  )
}

async function archiveLines(lines) {
  appendFileSync(archive, lines)
  crashPoint('prune.archived')
}

/** A copy of the file as it is after a step, made by a handle apart from the store's. */
function snapshot() {
  if (snapshots === undefined) return
  users.exec(`VACUUM INTO '${snapshots}/${step}.db'`)
}

snapshot()
say({ kind: 'acknowledged', step })
for (const scene of story) {
  if (typeof scene === 'number') {
    standing.advance(scene)
    continue
  }
  step = scene[0]
  const answer = await scene[1]()
  snapshot()
  say({ kind: 'acknowledged', step, answer })
}
await store.close()
users.close()
