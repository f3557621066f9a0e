// What the children of the crash tests share: how they report, and whose jobs they work on.
import { writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { document, hardened, leased, standard, task } from 'pawl/rules'
import { systemEnvironment } from 'pawl/sqlite'

/** Says a thing to the parent. It is out when this returns, even if the process dies next. */
export function say(thing) {
  writeSync(1, `${JSON.stringify(thing)}\n`)
}

/** A time that stands still until it is moved; the rest is a real process's. */
export function standingEnvironment(start) {
  let time = start
  const advance = (ms) => {
    time += ms
  }
  return { ...systemEnvironment(), clock: { now: () => time }, advance }
}

/** The user's own handle on the file, with the user's own tables. */
export function openUsers(path) {
  const { DatabaseSync } =
    process.getBuiltinModule('node:sqlite') ??
    createRequire(import.meta.url)('@photostructure/sqlite')
  const users = new DatabaseSync(path, { timeout: 5000 })
  users.exec('CREATE TABLE IF NOT EXISTS user_rows (job TEXT NOT NULL)')
  users.exec('CREATE TABLE IF NOT EXISTS user_notes (note TEXT NOT NULL)')
  return users
}

/** The function of a commit: a row of the user's own and, for some types, two effects. */
export function userWork(job, betweenWrites = () => {}) {
  return async (tx) => {
    await tx.query('INSERT INTO user_rows (job) VALUES (?)', [job.id])
    betweenWrites()
    if (job.type.startsWith('effectful')) {
      tx.effect('mail', JSON.stringify({ to: job.key }))
      tx.effect('mail', JSON.stringify({ copy: job.key }))
    }
    return JSON.stringify({ done: job.key })
  }
}

/** What the job that waits waits for, and what is sent to it. Each wait has its signal. */
export function waitsAt(start) {
  const until = start + 3_600_000
  return {
    signals: ['1', '2'].map((n) => ({ name: 'approval', key: n, payload: n })),
    waits: [1, 2].map((n) => ({ for: 'signal', name: 'approval', n, until })),
  }
}

const itemOf = (type) => ({
  lifecycle: standard,
  command: { type, queue: 'main' },
  input: JSON.stringify({ type }),
})

/** A batch that is open at first, with one callback. */
export const BATCH = {
  id: '00000000-0000-7000-a000-000000000001',
  kind: 'batch',
  open: true,
  nodes: [
    {
      item: itemOf('silent-callback'),
      after: [{ name: 'members', of: 'members', need: 'end', list: true }],
    },
    { item: itemOf('silent-member-1') },
  ],
}

/** The member that is added to the batch. */
export const ADDED = [itemOf('silent-member-2')]

/** What the job that invokes asks for. */
export function invokeBy({ job }) {
  const fence = { attempt: job.attempt, claim: job.execution.claim }
  return { id: job.id, fence, name: 'kids', n: 1, children: [itemOf('silent-child')] }
}

/** Jobs of silent types are committed by settling, without a function of the user's. */
export const isSilent = (job) => job.type.startsWith('silent')

const item = (jobId, type, lifecycle, command) => ({
  lifecycle,
  command: { jobId, type, queue: 'main', key: type, ...command },
  input: JSON.stringify({ type }),
})

const STRICT = [{ gate: 'strict/lined/k' }]
const turnOf = (key, weight = 1) => [{ gate: `group/turns/${key}`, weight }]

/** The jobs of the story by the step that enqueues them; each has a type and key of its own. */
export function itemsAt(start) {
  const later = { runAt: start + 60_000 }
  const named = {
    batch: [
      ['plain', standard, {}],
      ['effectful', standard, { tags: ['mail'] }],
      ['stepper', standard, { priority: 5 }],
      ['failing', standard, {}],
      ['releasing', standard, {}],
      ['suspending', standard, {}],
      ['fused', standard, {}],
      ['dropped', standard, {}],
      ['honoured', standard, {}],
      ['crashing', standard, {}],
      ['delayed', standard, later],
      ['held-back', standard, { hold: true }],
      ['parked', standard, {}],
      ['discarded', standard, {}],
      ['paused', standard, { queue: 'side' }],
      ['narrow', standard, { queue: 'narrow' }],
      ['silent-hardened', hardened, {}],
      ['silent-leased', leased, {}],
      ['effectful-document', document, later],
      ['task', task, {}],
      ['waiting', standard, {}],
      ['asking', standard, {}],
      ['silent-lined-1', standard, { limitKeys: STRICT }],
      ['silent-lined-2', standard, { limitKeys: STRICT }],
      ['silent-lined-3', standard, { limitKeys: STRICT }],
      ['silent-turn-a1', standard, { queue: 'turns', limitKeys: turnOf('a') }],
      ['silent-turn-a2', standard, { queue: 'turns', limitKeys: turnOf('a') }],
      ['silent-turn-b1', standard, { queue: 'turns', limitKeys: turnOf('b', 2) }],
      ['silent-turn-b2', standard, { queue: 'turns', limitKeys: turnOf('b', 2) }],
      ['silent-turn-b3', standard, { queue: 'turns', limitKeys: turnOf('b', 2) }],
    ],
    group: [['grouped', standard, {}]],
    joined: [['joined', standard, {}]],
    transacted: [['transacted', standard, {}]],
  }
  // Ids count apart from those that the store takes for its claims.
  let last = 0
  const nextId = () => `00000000-0000-7000-9000-${String(++last).padStart(12, '0')}`
  return Object.fromEntries(
    Object.entries(named).map(([step, items]) => [
      step,
      items.map((fields) => item(nextId(), ...fields)),
    ]),
  )
}
