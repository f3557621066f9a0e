/** What tests of jobs ask about answers, in one place, so that they read as sentences. */
import { type Command, type Decision, type Fact, hopsOf } from 'pawl/rules'
import type { JobScript } from 'pawl/testing'
import { expect } from 'vitest'

/** The commands that need a named person. */
const BY_OPERATOR: readonly string[] = ['park', 'redrive', 'discard', 'force', 'repair']

/** 'fact', 'same' or the stable code of the refusal. */
export function answerOf(decision: Decision): string {
  return decision.kind === 'rejected' ? decision.error.code : decision.kind
}

/** The fact of an accepted command; fails the test where it was not accepted. */
export function factOf(decision: Decision): Fact {
  if (decision.kind !== 'fact') throw new Error(`no fact, but ${answerOf(decision)}`)
  return decision.fact
}

/** The states that one fact led through, in order. */
export function stepsOf(decision: Decision): string[] {
  return hopsOf(factOf(decision)).map(({ from, to }) => `${from} → ${to}`)
}

/** Tells a command, as an operator where only an operator may. */
export function ask(script: JobScript, command: Command): Decision {
  return BY_OPERATOR.includes(command.kind) ? script.operate(command) : script.applyCommand(command)
}

/** Tells a command that must leave no trace, and gives the answer. */
export function askInVain(script: JobScript, command: Command): string {
  return inVain(script, () => ask(script, command))
}

/** Does something that must leave no trace, and gives the answer. */
export function inVain(script: JobScript, act: () => Decision): string {
  const [job, facts] = [script.job, structuredClone(script.facts)]
  const answer = answerOf(act())
  expect(answer).not.toBe('fact')
  expect(script.facts).toEqual(facts)
  expect(script.job).toEqual(job)
  return answer
}

/** Lets the present lease run out. */
export function letLeaseExpire(script: JobScript): void {
  const { execution } = script.job
  if (execution === null) throw new Error('nobody holds the job')
  script.clock.advance(execution.leaseUntil - script.clock.now())
}

/** Lets the job's due time come. */
export function letDue(script: JobScript): void {
  script.clock.advance(Math.max(0, (script.job.runAt ?? 0) - script.clock.now()))
}

/** The holder's lease runs out and somebody notices. */
export function crash(script: JobScript): Decision {
  letLeaseExpire(script)
  return script.applyCommand({ kind: 'expire', fence: script.fence }, { actor: 'engine' })
}

/** Fails the present attempt, in a way that a retry may cure. */
export function failRetryably(script: JobScript): Decision {
  const failure = { class: 'retryable', kind: 'transient', message: 'no answer' } as const
  return script.applyCommand({ kind: 'fail', fence: script.fence, failure }, { actor: 'worker' })
}

/** Fails the present attempt for good. */
export function failTerminally(script: JobScript): Decision {
  const failure = { class: 'terminal', kind: 'validation', message: 'no such page' } as const
  return script.applyCommand({ kind: 'fail', fence: script.fence, failure }, { actor: 'worker' })
}

/** Commits the present attempt, with this many effects to deliver. */
export function commit(script: JobScript, effects = 0): Decision {
  return script.applyCommand({ kind: 'commit', fence: script.fence, effects }, { actor: 'worker' })
}
