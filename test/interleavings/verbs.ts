// What callers do: every verb of the store that moves a job, as a caller that says what it learned.
// A verb of a holder uses the handles that its caller has; where there are none it claims first.
import type { Command } from '../../src/core/job/commands.ts'
import type { Fact } from '../../src/core/job/facts.ts'
import type {
  ClaimRequest,
  CommitTx,
  EffectReport,
  Held,
  HeldEffect,
  OnConflict,
  Requester,
  Store,
} from '../../src/stores/contract/store.ts'
import { CommitTooSlow } from '../../src/stores/errors.ts'
import {
  CLIENT,
  failureOf,
  fenceOf,
  OPERATOR,
  type Report,
  settlement,
} from '../contract/store/bench.ts'
import { keyOf, LEASE_MS, LONG_MS, type Scene, TYPE } from './scenes.ts'
import type { Telling, Witness } from './witness.ts'

/** A caller: a store of its own, or one that it shares, and what it holds. */
export interface Caller {
  readonly name: string
  readonly store: Store
  readonly witness: Witness
  readonly scene: Scene
  /** The jobs, in the order in which this caller names them. */
  readonly jobs: readonly string[]
  holds: readonly Held[]
  /** A new id. */
  newId(): string
  pass(ms: number): void
  /** Notes in the user's own table, inside a commit, that its function ran. */
  noteRun(tx: CommitTx, jobId: string, claim: string): Promise<unknown>
}

/** Something that a caller does. */
type Verb = (caller: Caller) => Promise<unknown>

const WORKER: Requester = { actor: 'worker' }
const MANY = 9

const requestOf = ({ name }: Caller): ClaimRequest => ({
  worker: name,
  limit: MANY,
  leaseMs: LEASE_MS,
  start: true,
})

async function claim(caller: Caller): Promise<void> {
  const { witness, store, name } = caller
  const label = `${name}: claim`
  const held = await witness.call(
    label,
    () => store.claim(requestOf(caller)),
    (held) => [{ kind: 'claimed', worker: name, held }],
  )
  if (held.length > 0) caller.holds = held
}

/** What the caller holds, in its own order. */
async function holdsOf(caller: Caller): Promise<readonly Held[]> {
  if (caller.holds.length === 0) await claim(caller)
  const places = new Map(caller.jobs.map((id, i) => [id, i]))
  const placeOf = ({ job }: Held) => places.get(job.id) ?? MANY
  return caller.holds.toSorted((a, b) => placeOf(a) - placeOf(b))
}

async function heartbeat(caller: Caller): Promise<void> {
  const { witness, store, name } = caller
  const held = await holdsOf(caller)
  const beats = held.map((one) => ({ ref: one.ref, fence: fenceOf(one) }))
  await witness.call(
    `${name}: heartbeat`,
    () => store.heartbeat(beats, LEASE_MS),
    ({ lost }) =>
      held.map(({ ref, job }, i) => ({
        kind: 'beaten',
        jobId: job.id,
        beat: beats[i] as (typeof beats)[number],
        leaseMs: LEASE_MS,
        lost: lost.includes(ref),
      })),
  )
}

/** With a function that waits in the middle, writes a row of its own, and declares an effect. */
async function commit(caller: Caller): Promise<void> {
  const { witness, store, name, scene } = caller
  const held = (await holdsOf(caller)).find(({ job }) => job.id === scene.jobs[0])
  if (held === undefined) return
  const { claim } = fenceOf(held)
  const work = async (tx: CommitTx) => {
    await witness.turn(`${name}: in the commit`)
    await caller.noteRun(tx, held.job.id, claim)
    await witness.turn(`${name}: at the end of the commit`)
    tx.effect('mail', '{}')
    return JSON.stringify(claim)
  }
  await witness.call(
    `${name}: commit`,
    () => store.commit(held, work).catch(onTooSlow),
    (answer): Telling[] =>
      answer === undefined ? [{ kind: 'too slow', held }] : [{ kind: 'committed', held, answer }],
  )
}

function onTooSlow(error: unknown): undefined {
  if (!(error instanceof CommitTooSlow)) throw error
}

/** Reports of an attempt, each of them on all that the caller holds. */
function settle(title: string, report: Report, claims = false): Verb {
  return async (caller) => {
    const { witness, store, name } = caller
    const held = await holdsOf(caller)
    const payload = report.kind === 'commit' || report.kind === 'step' ? '"settled"' : undefined
    const settlements = held.map((one) => settlement(one, report, payload))
    const next = claims ? requestOf(caller) : undefined
    await witness.call(
      `${name}: ${title}`,
      () => store.settle(settlements, next),
      ({ answers, claimed }): Telling[] => [
        ...settlements.map(({ held, command }, i): Telling => {
          const answer = answers[i] as (typeof answers)[number]
          return { kind: 'answered', jobId: held.job.id, command, requester: WORKER, answer }
        }),
        ...(claims ? [{ kind: 'claimed', worker: name, held: claimed } as const] : []),
      ],
    )
  }
}

/** Commands of clients and operators. */
function tell(
  command: Command,
  requester: Requester,
  verb: 'applyCommand' | 'cancel' = 'applyCommand',
): Verb {
  return async ({ witness, store, name, jobs }) => {
    const ask = () =>
      verb === 'cancel'
        ? store.cancel(jobs, requester)
        : store.applyCommand(jobs, command, requester)
    await witness.call(`${name}: ${command.kind}`, ask, (answers) =>
      answers.map((answer, i): Telling => {
        return { kind: 'answered', jobId: jobs[i] as string, command, requester, answer }
      }),
    )
  }
}

async function recover({ witness, store, name }: Caller): Promise<void> {
  await witness.call(
    `${name}: recover`,
    () => store.recover(MANY),
    (answers) => [{ kind: 'recovered', answers }],
  )
}

async function promote({ witness, store, name }: Caller): Promise<void> {
  await witness.call(
    `${name}: promote`,
    () => store.promote(MANY),
    (count) => [{ kind: 'promoted', count }],
  )
}

/** With an archive that waits. */
async function prune({ witness, store, name }: Caller): Promise<void> {
  const archived: Fact[] = []
  const archive = async (lines: string) => {
    await witness.turn(`${name}: in the archive`)
    for (const line of lines.trimEnd().split('\n')) archived.push(JSON.parse(line).fact)
  }
  await witness.call(
    `${name}: prune`,
    () => store.prune({ endedBefore: store.now() + 1, limit: MANY, archive }),
    (count) => [{ kind: 'pruned', count, archived }],
  )
}

function deliver(title: string, reportOf: (effect: HeldEffect, now: number) => EffectReport): Verb {
  return async (caller) => {
    const { witness, store, name, scene } = caller
    const late = title === 'deliver late' ? scene.effects : undefined
    const taken =
      late ??
      (await witness.call(
        `${name}: take effects`,
        () => store.claimEffects({ limit: MANY, leaseMs: LEASE_MS }),
        (effects) => [{ kind: 'taken', effects }],
      ))
    const place = (effect: HeldEffect) => caller.jobs.indexOf(effect.jobId)
    const ordered = taken.toSorted((a, b) => place(a) - place(b))
    const reports = ordered.map((effect) => reportOf(effect, store.now()))
    await witness.call(
      `${name}: ${title}`,
      () => store.settleEffects(reports),
      (oks) => reports.map((report, i) => ({ kind: 'reported', report, ok: oks[i] as boolean })),
    )
  }
}

const delivered = (effect: HeldEffect): EffectReport => ({ kind: 'delivered', effect })

async function retryEffects({ witness, store, name, jobs }: Caller): Promise<void> {
  const keys = jobs.flatMap((id) => [`${id}/mail/1`, `${id}/bill/1`])
  await witness.call(
    `${name}: retry effects`,
    () => store.retryEffects(keys, OPERATOR),
    (oks) => keys.map((key, i) => ({ kind: 'retried', key, ok: oks[i] as boolean })),
  )
}

function enqueue(title: string, onConflict: OnConflict): Verb {
  return async ({ witness, store, name, scene, jobs, newId }) => {
    const items = jobs.map((id) => {
      const key = keyOf(scene.jobs.indexOf(id))
      const command = { jobId: newId(), type: TYPE, queue: 'main', key }
      return { lifecycle: scene.lifecycle, input: '"again"', onConflict, command }
    })
    await witness.call(
      `${name}: ${title}`,
      () => store.enqueue(items),
      (answers) =>
        answers.map((answer, i) => ({ kind: 'enqueued', jobId: jobs[i] as string, answer })),
    )
  }
}

async function pass({ witness, name, pass }: Caller, ms = LEASE_MS): Promise<void> {
  await witness.call(
    `${name}: time passes`,
    () => pass(ms),
    () => [{ kind: 'time passed' }],
  )
}

/** What another worker does to a job whose holder is silent. */
async function takeOver(caller: Caller): Promise<void> {
  await pass(caller)
  await recover(caller)
  await pass(caller, LONG_MS)
  await promote(caller)
  await claim(caller)
}

/** An ended job lives again, and ends again. */
async function failAgain(caller: Caller): Promise<void> {
  await COMMON_VERBS.redrive(caller)
  await claim(caller)
  await HOLDERS_VERBS['fail for good'](caller)
}

/** Verbs of a holder, by the names under which schedules show them. */
const HOLDERS_VERBS = {
  heartbeat,
  commit,
  succeed: settle('succeed', { kind: 'commit' }),
  'succeed and claim': settle('succeed and claim', { kind: 'commit' }, true),
  fail: settle('fail', { kind: 'fail', failure: failureOf('transient') }),
  'fail for good': settle('fail for good', { kind: 'fail', failure: failureOf('terminal') }),
  release: settle('release', { kind: 'release' }),
  step: settle('step', { kind: 'step', name: 'measure', n: 1 }),
  'cancel as holder': settle('cancel as holder', { kind: 'cancel' }),
} satisfies Record<string, Verb>

/** Verbs of anybody. */
const COMMON_VERBS = {
  claim,
  cancel: tell({ kind: 'cancel' }, CLIENT, 'cancel'),
  park: tell({ kind: 'park' }, OPERATOR),
  redrive: tell({ kind: 'redrive' }, OPERATOR),
  discard: tell({ kind: 'discard' }, OPERATOR),
  recover,
  promote,
  prune,
  deliver: deliver('deliver', delivered),
  'deliver late': deliver('deliver late', delivered),
  'fail to deliver': deliver('fail to deliver', (effect, now) => {
    return { kind: 'retry', effect, runAt: now, error: 'boom' }
  }),
  'retry effects': retryEffects,
  'enqueue again': enqueue('enqueue again', 'existing'),
  'replace input': enqueue('replace input', 'replace'),
} satisfies Record<string, Verb>

/** What is nothing but verbs in a row, or nothing but time. */
const OTHERS = {
  'time passes': (caller) => pass(caller),
  'take over': takeOver,
  'fail again': failAgain,
} satisfies Record<string, Verb>

/** Every verb. */
export const VERBS = { ...HOLDERS_VERBS, ...COMMON_VERBS, ...OTHERS }

/** The name of a verb. */
export type VerbName = keyof typeof VERBS

/** Every name. */
export const VERB_NAMES = Object.keys(VERBS) as VerbName[]

/** Whether it needs a handle. */
export function isHolders(name: VerbName): boolean {
  return name in HOLDERS_VERBS
}

/** Whether it is no verb of its own. */
export function isComposed(name: VerbName): boolean {
  return name in OTHERS
}
