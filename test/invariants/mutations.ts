// Semantic damage to a ledger: one kind each, with every place at which it can be done. Each must
// be reported by a promise, given the undamaged row beside the damaged ledger.
//
// Left out, because no promise is about them or nothing but the fact itself could tell:
// - words that the fold does not keep: actor, note, metadata, usage, effects, steps, traces;
// - values that a later fact overwrites: priority, reason, error, outcome, and due times that no
//   policy sets (the last of each is in the row, and P9 compares it);
// - a start that says nothing of its attempt: an attempt that never started is legal as well;
// - the time of a fact in the middle, and a budget that was spent before a redrive forgave it;
// - `delayAsked` added to a retry: the fact is the only witness of what the handler asked for;
// - the operator's name on a step that takes no operator edge (a park of a running job, a block
//   set or taken away): the decider asks for it, P2 does not;
// - a creation elsewhere than in the initial state: the tests of P2 have it.
import type { Job, Lifecycle } from 'pawl'
import { type Fact, fold } from 'pawl/rules'

/** A legal history, as the mutations see it. */
interface Legal {
  readonly lifecycle: Lifecycle
  readonly facts: readonly Fact[]
}

/** Every ledger that this kind of damage can make of a legal one. */
export type Mutation = (legal: Legal) => Fact[][]

/** Replaces each fact that fits, one at a time. */
function each(
  facts: readonly Fact[],
  change: (fact: Fact, before: () => Job | null) => Fact | undefined,
): Fact[][] {
  return facts.flatMap((fact, i) => {
    const changed = change(fact, () => fold(facts.slice(0, i)))
    return changed === undefined ? [] : [[...facts.slice(0, i), changed, ...facts.slice(i + 1)]]
  })
}

const lose = (fact: Fact, ...keys: (keyof Fact)[]): Fact =>
  Object.fromEntries(
    Object.entries(fact).filter(([key]) => !keys.some((lost) => lost === key)),
  ) as unknown as Fact

const onExecution = (
  fact: Fact,
  fields: Partial<NonNullable<Fact['execution']>>,
): Fact | undefined => fact.execution && { ...fact, execution: { ...fact.execution, ...fields } }

const lastIndex = (facts: readonly Fact[], fits: (fact: Fact) => boolean) =>
  facts.findLastIndex(fits)

const moves = ({ from, via, to }: Fact) => from !== to || via !== undefined

/** Every mutation, by what it does. */
export const MUTATIONS: Readonly<Record<string, Mutation>> = {
  'drops a fact': ({ facts }) => facts.map((_, i) => facts.filter((_, j) => j !== i)),

  'drops a fact and closes the gap': ({ facts }) =>
    facts.map((_, i) =>
      facts.filter((_, j) => j !== i).map((fact, j) => ({ ...fact, seq: j + 1 })),
    ),

  'swaps two facts': ({ facts }) =>
    facts.slice(1).map((fact, i) => facts.with(i, fact).with(i + 1, facts[i] as Fact)),

  'tells a fact twice': ({ facts }) =>
    facts.map((fact, i) => [...facts.slice(0, i), fact, ...facts.slice(i)]),

  'changes where a fact leads': ({ lifecycle, facts }) =>
    [...lifecycle.roles.keys()].flatMap((to) =>
      each(facts, (fact) => (fact.to === to ? undefined : { ...fact, to })),
    ),

  'changes where a fact begins': ({ lifecycle, facts }) =>
    [...lifecycle.roles.keys()].flatMap((from) =>
      each(facts, (fact) => (fact.from === from ? undefined : { ...fact, from })),
    ),

  'skips the states in between': ({ facts }) =>
    each(facts, (fact) =>
      fact.via === undefined || fact.from === null ? undefined : lose(fact, 'via'),
    ),

  'leads by way of a state that does not exist': ({ facts }) =>
    each(facts, (fact) =>
      ['force', 'repair'].includes(fact.trigger) || !moves(fact)
        ? undefined
        : { ...fact, via: [...(fact.via ?? []), 'frozen'] },
    ),

  'raises or lowers the number of an attempt': ({ facts }) =>
    [-1, 1, 7].flatMap((by) =>
      each(facts, (fact) => onExecution(fact, { attempt: (fact.execution?.attempt ?? 0) + by })),
    ),

  'commits a second time': ({ facts }) => {
    const commit = facts.find(({ trigger }) => trigger === 'commit')
    const last = facts.at(-1)
    if (commit === undefined || last === undefined) return []
    return [[...facts, { ...commit, seq: last.seq + 1, from: last.to, to: last.to }]]
  },

  'lets an attempt skip or repeat a status': ({ facts }) =>
    each(facts, (fact) => {
      const statuses = fact.execution?.statuses ?? []
      const first = statuses[0]
      return first && onExecution(fact, { statuses: [first, ...statuses] })
    }),

  'loses what happened to an attempt': ({ facts }) =>
    each(facts, (fact) =>
      fact.execution === undefined || fact.trigger === 'start'
        ? undefined
        : lose(fact, 'execution'),
    ),

  'lets a retry or a recovered job run too early': ({ facts }) =>
    each(facts, (fact) =>
      ['retry', 'expire'].includes(fact.trigger) ? { ...fact, runAt: fact.at - 1 } : undefined,
    ),

  'lets a retry or a recovered job run ten years later': ({ facts }) =>
    each(facts, (fact) =>
      ['retry', 'expire'].includes(fact.trigger)
        ? { ...fact, runAt: fact.at + 315_360_000_000 }
        : undefined,
    ),

  'claims before the due time': ({ facts }) =>
    each(facts, (fact, before) =>
      fact.trigger === 'claim' ? { ...fact, at: (before()?.runAt ?? 0) - 1 } : undefined,
    ),

  'hides the operator of an operator edge or of a forced move': ({ lifecycle, facts }) =>
    each(facts, (fact) => {
      const edge = lifecycle.machine.byTarget.get(fact.from ?? '')?.get(fact.to)
      const forced = fact.trigger === 'force' || fact.trigger === 'repair'
      return forced || edge?.operator === true ? lose(fact, 'operator') : undefined
    }),

  'charges a step to no budget': ({ facts }) =>
    each(facts, (fact) => {
      const forgiven = facts.some(({ seq, resets }) => resets === true && seq > fact.seq)
      if (fact.spends === undefined) return undefined
      return forgiven && fact.spends !== 'release' ? undefined : lose(fact, 'spends')
    }),

  'forgets how the job ended': ({ facts }) => {
    const end = lastIndex(facts, moves)
    const fact = facts[end]
    return fact?.outcome === undefined ? [] : [facts.with(end, lose(fact, 'outcome'))]
  },

  'forgets the last due time': ({ facts }) => {
    const timed = lastIndex(facts, ({ runAt }) => runAt !== undefined)
    const fact = facts[timed]
    return fact?.runAt === undefined
      ? []
      : [facts.with(timed, { ...fact, runAt: (fact.runAt ?? 0) + 1 })]
  },

  'belongs to another job': ({ facts }) =>
    each(facts, (fact) => ({ ...fact, jobId: '99999999-0000-7000-8000-000000000000' })),

  'creates the job a second time': ({ facts }) => {
    const created = facts[0]?.created
    if (created === undefined) return []
    return each(facts, (fact) => (fact.seq === 1 ? undefined : { ...fact, created }))
  },

  'is of an unknown format': ({ facts }) =>
    each(facts, (fact) => ({ ...fact, version: 2 as unknown as 1 })),
}
