/**
 * The life of one job, played in memory on a clock that this program moves: a failure that is
 * retried, a worker that freezes past its lease and comes back too late, a commit that happens
 * once. Prints the ledger from which everything about the job can be derived.
 *
 *   npm run build && node .build/programs/examples/01-lifecycle/main.js [--json]
 */
import {
  checkFacts,
  checkP9,
  classify,
  type Decision,
  executionsOf,
  fold,
  standard,
} from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { renderStory } from './render.ts'

const script = new JobScript(standard)
const refusals: { who: string; command: string; code: string }[] = []

/** Keeps what was refused, so that it can be shown: a refusal leaves no fact. */
function ask(who: string, command: string, decision: Decision): void {
  if (decision.kind === 'rejected') refusals.push({ who, command, code: decision.error.code })
}

script.create({ type: 'invoice', queue: 'billing', key: 'order-1' })

// The first attempt meets an error that a retry may cure.
script.claim({ worker: 'worker-a' })
script.clock.advance(800)
const unavailable = classify(new Error('the mail server is away'))
script.applyCommand(
  { kind: 'fail', fence: script.fence, failure: unavailable },
  { actor: 'worker' },
)

// The retry is not early: until its time has come, nobody can have the job.
ask('worker-a', 'claim', script.claim({ worker: 'worker-a' }))
script.clock.advance(2000)
script.applyCommand({ kind: 'due' }, { actor: 'engine' })

// The second attempt freezes past its lease, and the engine takes the job back.
script.claim({ worker: 'worker-a' })
const frozen = script.fence
script.clock.advance(30_000)
script.applyCommand({ kind: 'expire', fence: frozen }, { actor: 'engine' })
script.clock.advance(2000)
script.applyCommand({ kind: 'due' }, { actor: 'engine' })

// Another worker commits. The frozen one wakes and tries the same: it is too late, for all time.
script.claim({ worker: 'worker-b' })
const commit = { kind: 'commit', effects: 1 } as const
ask('worker-a', 'commit', script.applyCommand({ ...commit, fence: frozen }, { actor: 'worker' }))
script.clock.advance(500)
script.applyCommand({ ...commit, fence: script.fence }, { actor: 'worker' })
ask('client', 'cancel', script.applyCommand({ kind: 'cancel' }))

// The effect is delivered, and the job is done.
script.clock.advance(100)
script.applyCommand({ kind: 'done', attempt: script.job.attempt }, { actor: 'engine' })

const { facts, job } = script
const result = {
  state: job.state,
  facts: facts.length,
  executions: executionsOf(facts).length,
  commits: facts.filter(({ trigger }) => trigger === 'commit').length,
  refusals,
  violations: [...checkFacts(standard, facts), ...checkP9(job, facts)],
  foldEqualsJob: JSON.stringify(fold(facts)) === JSON.stringify(job),
}

if (process.argv.includes('--json')) console.log(JSON.stringify(result))
else console.log(renderStory(script, result))

const broken = result.violations.length > 0 || !result.foldEqualsJob || result.commits !== 1
process.exitCode = broken ? 1 : 0
