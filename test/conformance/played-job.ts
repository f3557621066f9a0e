// The steps of which the conformance tests of job lifecycles are made.
import type { Lifecycle, PawlError } from 'pawl'
import { classify, type Decision, type Fact } from 'pawl/rules'
import { JobScript } from 'pawl/testing'

/** What `JobScript.claim` gives a lease by default. */
export const LEASE_MS = 30_000

/** Every command, by a name of its own where one command is asked in several ways. */
const ASKS: Readonly<Record<string, (script: JobScript) => Decision>> = {
  create: (script) => script.create(),
  submit: (script) => script.applyCommand({ kind: 'submit' }),
  schedule: (script) => script.applyCommand({ kind: 'schedule', runAt: script.clock.now() + 5000 }),
  due: (script) => {
    script.clock.advance(1000)
    return script.applyCommand({ kind: 'due' }, { actor: 'engine' })
  },
  'reschedule to later': (script) =>
    script.applyCommand({ kind: 'reschedule', runAt: script.clock.now() + 5000 }),
  prioritise: (script) => script.applyCommand({ kind: 'prioritise', priority: 7 }),
  exhaust: (script) => script.applyCommand({ kind: 'exhaust' }, { actor: 'engine' }),
  claim: (script) => script.claim({ worker: 'worker-2' }),
  start: (script) => script.applyCommand({ kind: 'start', fence: lastFence(script) }),
  step: (script) =>
    script.applyCommand({ kind: 'step', fence: lastFence(script), name: 'a', n: 1 }),
  commit: (script) => script.applyCommand({ kind: 'commit', fence: lastFence(script) }),
  done: (script) => script.applyCommand({ kind: 'done', attempt: script.job.attempt }),
  'fail retryably': (script) => fail(script, new Error('boom')),
  'fail for good': (script) => failAs(script, 'terminal'),
  release: (script) => script.applyCommand({ kind: 'release', fence: lastFence(script) }),
  suspend: (script) =>
    script.applyCommand({
      kind: 'suspend',
      fence: lastFence(script),
      runAt: script.clock.now() + 5000,
    }),
  expire: (script) => {
    script.clock.advance(LEASE_MS)
    return script.applyCommand({ kind: 'expire', fence: lastFence(script) }, { actor: 'engine' })
  },
  cancel: (script) => script.applyCommand({ kind: 'cancel' }),
  park: (script) => script.operate({ kind: 'park' }),
  redrive: (script) => script.operate({ kind: 'redrive' }),
  discard: (script) => script.operate({ kind: 'discard' }),
}

/** The names of all commands that can be asked. */
export const ASK_NAMES: readonly string[] = Object.keys(ASKS)

/** Asks a command by its name. */
export function ask(script: JobScript, name: string): Decision {
  const asked = ASKS[name]
  if (asked === undefined) throw new Error(`there is no command ${name}`)
  return asked(script)
}

/** A new job of a lifecycle, submitted. */
export function submitted(lifecycle: Lifecycle): JobScript {
  const script = new JobScript(lifecycle)
  script.create()
  return script
}

/** A new job of a lifecycle, claimed and started. */
export function running(lifecycle: Lifecycle): JobScript {
  const script = submitted(lifecycle)
  script.claim()
  return script
}

/** The holder reports whatever its handler threw. */
export function fail(script: JobScript, thrown: unknown): Decision {
  const failure = classify(thrown)
  return script.applyCommand(
    { kind: 'fail', fence: lastFence(script), failure },
    { actor: 'worker' },
  )
}

/** The holder reports a failure that no retry cures. */
export function failAs(script: JobScript, kind: 'terminal' | 'deadline'): Decision {
  const failure = { class: 'terminal', kind, message: 'no hope' } as const
  return script.applyCommand(
    { kind: 'fail', fence: lastFence(script), failure },
    { actor: 'worker' },
  )
}

/** The fence of whoever holds the job, or of the last that held it. */
function lastFence(script: JobScript): { attempt: number; claim: string } {
  const claims = script.facts.flatMap(({ execution }) => execution?.claim ?? [])
  return { attempt: script.job.attempt, claim: claims[claims.length - 1] ?? 'nobody' }
}

/** The fact of an accepted command. */
export function factOf(decision: Decision): Fact {
  if (decision.kind !== 'fact') throw new Error(`no fact, but ${answerOf(decision)}`)
  return decision.fact
}

/** The refusal of a command. */
export function refusalOf(decision: Decision): PawlError {
  if (decision.kind !== 'rejected') throw new Error(`not refused, but ${decision.kind}`)
  return decision.error
}

/** An answer in one word: the code of the refusal, or fact, or same. */
export function answerOf(decision: Decision): string {
  return decision.kind === 'rejected' ? decision.error.code : decision.kind
}

/** The states that a fact led through, as text. */
export function wayOf(fact: Fact): string {
  return [fact.from, ...(fact.via ?? []), fact.to].join(' → ')
}

/** The states that a job was in, from its creation on, each once per entry. */
export function statesOf(facts: readonly Fact[]): string[] {
  const passed = facts.flatMap(({ via, to }) => [...(via ?? []), to])
  return passed.filter((state, i) => state !== passed[i - 1])
}

/** A table of pairs: states to come from as rows, to go to as columns, and a word for each. */
export function readPairs(table: string): { from: string; to: string; word: string }[] {
  const [head = [], ...rows] = table
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
  return rows.flatMap(([from = '', ...words]) => {
    if (words.length !== head.length) throw new Error(`the row of ${from} is not complete`)
    return words.map((word, i) => ({ from, to: head[i] ?? '', word }))
  })
}
