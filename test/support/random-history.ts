/**
 * Random lives of a job, for property tests.
 *
 *   histories({ lifecycles, commandsMax })   a fast-check arbitrary of `History`
 *   History.script                           the JobScript that was played: lifecycle, facts, job
 *   History.policy                           the policy of the job, null for its lifecycle's own
 *   History.told                             every command in order: context, answer, job before
 *                                            and after; `decide` can be asked again with these
 *   COMMAND_KINDS                            every command that the player may tell
 *
 *   fc.assert(fc.property(histories({ lifecycles: [hardened] }), ({ script, told }) => { … }))
 *
 * A history is mostly meaningful: each move looks at the job first and prefers what fits there,
 * with the right fence and at the right time. The rest is noise on purpose: any command with any
 * fence (`any`), an earlier command delivered again word for word (`again`), and a holder that lost
 * the job and does not know it (`late`). After a job has ended for good a few moves still follow,
 * to show that nothing changes it. Every history has a job, though it may have no other fact than
 * its creation. What fails shrinks by moves, and prints as a list of commands.
 */
import fc from 'fast-check'
import type { Lifecycle } from 'pawl'
import { type JobPolicy, LIFECYCLES, type PolicyOverrides, policyFor } from 'pawl/rules'
import type { JobScript } from 'pawl/testing'
import { type Move, Player, type Told } from './job-player.ts'

export { COMMAND_KINDS } from './job-player.ts'

/** Which jobs to play, and for how long. */
export interface HistoryOptions {
  /** All that ship, if absent. */
  readonly lifecycles?: readonly Lifecycle[]
  /** 40 if absent. */
  readonly commandsMax?: number
}

/** One job's life. */
export interface History {
  readonly script: JobScript
  readonly policy: JobPolicy | null
  readonly told: readonly Told[]
  /** What a failing property prints. */
  readonly [fc.toStringMethod]: () => string
}

/** After a job has ended for good, this many commands still try to change it. */
const AFTERLIFE = 5
/** Random histories of jobs of these lifecycles. */
export function histories(options: HistoryOptions = {}): fc.Arbitrary<History> {
  const { lifecycles = LIFECYCLES, commandsMax = 40 } = options
  const mode = fc.oneof(
    { arbitrary: fc.constant('fitting' as const), weight: 14 },
    { arbitrary: fc.constant('any' as const), weight: 2 },
    { arbitrary: fc.constant('again' as const), weight: 1 },
    { arbitrary: fc.constant('late' as const), weight: 1 },
  )
  // A seed is only a number: small ones are not simpler than large ones.
  const seed = fc.noBias(fc.nat({ max: 0x7fff_ffff }))
  const moves = fc.array(fc.record({ mode, seed }), { maxLength: commandsMax, size: 'max' })
  return fc
    .tuple(fc.constantFrom(...lifecycles), fc.option(policies), seed, moves)
    .map(([lifecycle, overrides, number, list]) => play(lifecycle, overrides, number, list))
}

/** Budgets small enough to be spent within one history. */
const policies: fc.Arbitrary<PolicyOverrides> = fc.record({
  retry: fc.record({
    max: fc.nat({ max: 3 }),
    backoff: fc.constantFrom('fixed' as const, 'exponential' as const),
    delayMs: fc.constantFrom(0, 1, 1000, 5000),
    factor: fc.constantFrom(1, 2, 3.5),
    delayMaxMs: fc.constantFrom(0, 3000, 60_000),
    jitter: fc.constantFrom(0, 0.3, 1),
  }),
  crashesMax: fc.nat({ max: 3 }),
  releasesMax: fc.nat({ max: 3 }),
  recovery: fc.constantFrom('automatic' as const, 'automatic' as const, 'operator' as const),
})

function play(
  lifecycle: Lifecycle,
  overrides: PolicyOverrides | null,
  seed: number,
  moves: readonly Move[],
): History {
  const { retry, ...budgets } = overrides ?? {}
  const free = lifecycle.retryFixed || retry === undefined ? budgets : { retry, ...budgets }
  const policy = overrides === null ? null : policyFor(lifecycle, free)
  const player = new Player(lifecycle, policy, seed)
  let left = AFTERLIFE
  for (const move of moves) {
    player.make(move)
    if (player.isOver && left-- === 0) break
  }
  // Whatever the moves were, the job comes into being, so that every history has one to look at.
  while (player.script.facts.length === 0) player.make({ mode: 'fitting', seed })
  const { script, told } = player
  return { script, policy, told, [fc.toStringMethod]: () => print(script, policy, told) }
}

function print(script: JobScript, policy: JobPolicy | null, told: readonly Told[]): string {
  const lines = told.map(({ mode, command, context, answer, after }) => {
    const outcome = answer.kind === 'rejected' ? answer.error.code : answer.kind
    const what = `${JSON.stringify(command)} by ${context.actor} (${mode})`
    return `  ${context.now} ${what} → ${outcome}, ${after?.state ?? 'no job'}`
  })
  const head = `${script.lifecycle.name}, policy ${JSON.stringify(policy)}`
  return `\n${[head, ...lines].join('\n')}\n`
}
