/**
 * Clients that come back with a key whose job was removed, in one seed of four. The office enqueues
 * jobs with few keys, again and again, and removes what has ended, with an archive and with
 * `keys`. Processes die in between, calls are lost and repeated. The judge reads the facts of what
 * is there and of what was archived:
 *
 *   P12   no job is created with the key of another one before that one's key is free
 *   P1    every job that was acknowledged is there, or was archived
 *   P8    nothing is removed before its time, and what is archived has all its facts
 */
import { defineJob, type RunnableJob, typed } from 'pawl'
import type { Fact } from 'pawl/rules'
import type { Judged, Told } from './checker.ts'
import type { History } from './history.ts'
import type { Desk } from './people.ts'

/** The seeds in which clients come back; not those with visits. */
export const hasReturns = (seed: number) => seed % 4 === 2

export const RETURNS = 24
const PAUSE_MS = 600
const KEYS = 3
const TYPE = 'returning'
const KEEP_MS = 1000
/** For how long a key stays taken after the end of its job. */
const KEYS_MS = 5000

/** The job type of clients that come back. */
export function returningJob(
  sleep: (ms: number) => Promise<void>,
): RunnableJob<{ n: number }, { n: number }, unknown> {
  return defineJob({
    name: TYPE,
    input: typed<{ n: number }>(),
    crashesMax: 6,
    run: async ({ input }) => {
      await sleep((input.n * 397) % 700)
      return input.n
    },
  })
}

/** Repeats until it has enough answers; a replacement continues where the last one died. */
export async function comeBack(desk: Desk, history: History): Promise<void> {
  const { timers } = desk.process.environment
  const definition = desk.jobs.find(({ name }) => name === TYPE) as Desk['jobs'][number]
  while ((history.visitsLeft ?? 0) > 0) {
    await new Promise<void>((resolve) => timers.after(PAUSE_MS, resolve))
    const n = RETURNS - (history.visitsLeft as number)
    try {
      if (n % 2 === 1) await removeOld(desk, history)
      const { id } = await desk.pawl.enqueue(definition, { n }, { key: `customer ${n % KEYS}` })
      history.visits.push({ type: TYPE, n, id })
      if (history.removed.has(id)) history.keysMet++
      history.visitsLeft = (history.visitsLeft as number) - 1
    } catch (error) {
      history.expectTyped(error)
    }
  }
}

function removeOld({ pawl }: Desk, history: History): Promise<unknown> {
  const archive = async (lines: string) => {
    const now = pawl.store.now()
    for (const [id, facts] of history.archive(lines)) history.removed.set(id, { facts, at: now })
  }
  const keep = { succeeded: KEEP_MS, failed: KEEP_MS, cancelled: KEEP_MS }
  return pawl.operator({ name: 'ada', reason: 'the store is to stay small' }).runRetention({
    types: [TYPE],
    retention: { ...keep, keys: KEYS_MS, archive },
  })
}

interface Life {
  readonly id: string
  readonly facts: readonly Fact[]
  readonly createdAt: number
  readonly endedAt: number
}

/** Judges what clients that came back were given. */
export function judgeReturns(told: readonly Told[], history: History): Judged[] {
  const all = new Map<string, readonly Fact[]>()
  for (const [id, { facts }] of history.removed) all.set(id, facts)
  for (const { job, facts } of told) if (job.type === TYPE) all.set(job.id, facts)
  const lives = [...all].map(([id, facts]) => lifeOf(id, facts))
  const lost = history.visits.filter(({ type, id }) => type === TYPE && !all.has(id))
  return [
    ...lost.map(({ id }) => blame('P1', id, 'was acknowledged, and is neither kept nor archived')),
    ...judgeRemovals(history),
    ...Array.from({ length: KEYS }, (_, n) => judgeKey(lives, `customer ${n}`)).flat(),
  ]
}

function judgeRemovals(history: History): Judged[] {
  return [...history.removed].flatMap(([id, { facts, at }]) => {
    const isWhole = facts.every(({ seq }, i) => seq === i + 1)
    const isOld = lifeOf(id, facts).endedAt + KEEP_MS <= at
    return [
      ...(isWhole ? [] : [blame('P8', id, 'was archived without some of its facts', facts)]),
      ...(isOld ? [] : [blame('P8', id, 'was removed before its time', facts)]),
    ]
  })
}

function judgeKey(lives: readonly Life[], key: string): Judged[] {
  const own = lives
    .filter(({ facts }) => facts[0]?.created?.key === key)
    .sort((a, b) => a.createdAt - b.createdAt)
  return own.slice(1).flatMap(({ id, createdAt, facts }, i) => {
    const before = own[i] as Life
    if (createdAt >= before.endedAt + KEYS_MS) return []
    const early = before.endedAt + KEYS_MS - createdAt
    return [blame('P12', id, `has the key of ${before.id}, ${early} ms too early`, facts)]
  })
}

function lifeOf(id: string, facts: readonly Fact[]): Life {
  const ended = facts.findLast(({ outcome }) => outcome !== undefined)
  const endedAt = ended?.at ?? Number.POSITIVE_INFINITY
  return { id, facts, createdAt: facts[0]?.at ?? 0, endedAt }
}

function blame(promise: string, job: string, what: string, facts: readonly Fact[] = []): Judged {
  return { promise, job, what, facts }
}
