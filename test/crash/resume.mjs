// The process that comes after those that died. It opens each of their files a day later, asks
// again for what the dead one was never told of, and works until every job has ended or is parked.
import { openSqliteStore } from 'pawl/sqlite'
import {
  ADDED,
  BATCH,
  invokeBy,
  isSilent,
  itemsAt,
  openUsers,
  say,
  standingEnvironment,
  userWork,
  waitsAt,
} from './common.mjs'

const HOUR_MS = 60 * 60 * 1000
const ROUNDS_MAX = 100

const OPERATOR = { actor: 'operator', operator: 'ann', note: 'after the crash' }
const REQUEST = { worker: 'worker-9', limit: 100, leaseMs: 30_000, start: true }

const { runs, start } = JSON.parse(process.argv[2])
for (const run of runs) await resume(run)

async function resume({ path, acknowledged }) {
  const environment = standingEnvironment(start + 24 * HOUR_MS)
  const store = await openSqliteStore({ path, environment })
  const users = openUsers(path)
  for (const [step, items] of Object.entries(itemsAt(start))) {
    if (!acknowledged.includes(step)) await store.enqueue(items)
  }
  await sendAgain(store, acknowledged)
  await makeAgain(store, acknowledged)
  await store.resumeQueue('side', OPERATOR)
  const { items: idle } = await store.list({ lane: 'idle' })
  for (const { id } of idle) await store.applyCommand([id], { kind: 'submit' }, OPERATOR)

  for (let round = 0; ; round++) {
    if (round > ROUNDS_MAX) throw new Error(`the jobs in ${path} do not come to an end`)
    await workOnce(store, path)
    const { lanes } = await store.counts()
    if (lanes.idle + lanes.waiting + lanes.ready + lanes.held + lanes.delivering === 0) break
    environment.advance(HOUR_MS)
  }
  await store.close()
  users.close()
}

/** Sends the signals of which the dead process was not told, and perhaps had sent. */
async function sendAgain(store, acknowledged) {
  const { items } = await store.list({ type: 'waiting' })
  for (const [i, step] of ['signal-early', 'signal'].entries()) {
    if (acknowledged.includes(step)) continue
    const ids = items.map(({ id }) => id)
    const answers = await store.waits.signal(ids, waitsAt(start).signals[i], OPERATOR)
    for (const { kind } of answers) if (kind === 'rejected') throw new Error(`no ${step}`)
  }
}

/** Makes what the dead process was not told of, and perhaps had made. */
async function makeAgain({ flows }, acknowledged) {
  const at = BATCH.nodes.length
  if (!acknowledged.includes('flow')) await flows.create(BATCH)
  if (!acknowledged.includes('flow-add')) await flows.add(BATCH.id, ADDED, { at })
  if (!acknowledged.includes('flow-close')) await flows.close(BATCH.id, OPERATOR)
}

/** Each wait receives its signal, whatever had happened before. */
async function receiveAll(store, { job }) {
  const fence = { attempt: job.attempt, claim: job.execution.claim }
  const { signals, waits } = waitsAt(start)
  for (const [i, wait] of waits.entries()) {
    const { end } = await store.waits.wait({ id: job.id, fence, wait })
    if (end?.payload !== signals[i].payload) throw new Error(`signal ${i} was lost`)
  }
}

async function workOnce(store, path) {
  await store.recover(100)
  await store.promote(100)
  await store.flows.wake(100)
  for (const held of await store.claim(REQUEST)) {
    const { kind } = await finish(store, held)
    if (kind !== 'done') throw new Error(`job ${held.job.id} was not finished: ${kind}`)
  }
  const effects = await store.claimEffects({ limit: 100, leaseMs: 30_000 })
  for (const { key, payload } of effects) say({ kind: 'delivered', path, key, payload })
  await store.settleEffects(effects.map((effect) => ({ kind: 'delivered', effect })))
}

async function finish(store, held) {
  const { job } = held
  if (job.type === 'waiting') await receiveAll(store, held)
  if (job.type === 'asking') {
    const { kind } = await store.flows.invoke(invokeBy(held))
    if (kind === 'suspended') return { kind: 'done' }
  }
  if (!isSilent(job)) return store.commit(held, userWork(job))
  const fence = { attempt: job.attempt, claim: job.execution.claim }
  const command = { kind: 'commit', fence }
  const { answers } = await store.settle([{ held, command, payload: '1' }])
  return answers[0]
}
