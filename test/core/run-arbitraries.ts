// Random histories of runs. A step is either a command as it stands, or a wish to get on, which is
// turned into a legal move by the table typed by hand; otherwise no history would get far.
import fc from 'fast-check'
import type { RunCommand } from 'pawl/rules'
import type { RunScript } from 'pawl/testing'
import { hash, newRun, STATES, targetsOf } from './run-support.ts'

/** One step of a random history. */
type Step = RunCommand | { readonly kind: 'advance'; readonly pick: number }

/** Few names, so that histories meet them again; some are traps for objects used as maps. */
const anyName = fc.constantFrom('a', 'b', 'c', '10', '9', '__proto__', 'constructor', 'é')

const anyHash = fc.constantFrom('1', '2', '3').map(hash)
const anyInputs = fc
  .array(fc.tuple(anyName, anyHash), { maxLength: 3 })
  .map((entries) => Object.fromEntries(entries))

const advance = fc.record({ kind: fc.constant('advance' as const), pick: fc.nat(20) })
const validation = fc.record({
  kind: fc.constant('record-validation' as const),
  ok: fc.boolean(),
})
const rewind: fc.Arbitrary<RunCommand> = fc.oneof(
  fc.constant({ kind: 'rewind', reason: 'resume' } as const),
  fc.record({
    kind: fc.constant('rewind' as const),
    reason: fc.constant('stale' as const),
    to: fc.constantFrom(...STATES),
  }),
)
const anyMove = fc.record({ kind: fc.constant('move' as const), to: fc.constantFrom(...STATES) })

const artifacts: fc.Arbitrary<RunCommand> = fc.oneof(
  fc.record({
    kind: fc.constant('write-artifact' as const),
    name: anyName,
    path: fc.constant('a/file'),
    sha256: anyHash,
    worker: fc.constant('w'),
    workItem: anyName,
  }),
  fc.record({
    kind: fc.constantFrom('invalidate-artifact' as const, 'revalidate-artifact' as const),
    name: anyName,
  }),
)

const items: fc.Arbitrary<RunCommand> = fc.oneof(
  fc.record({
    kind: fc.constant('start-item' as const),
    key: anyName,
    inputs: anyInputs,
    worker: fc.constant('w'),
    forced: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('finish-item' as const), key: anyName, inputs: anyInputs }),
  fc.record({ kind: fc.constant('fail-item' as const), key: anyName, error: fc.constant('no') }),
)

const notes: fc.Arbitrary<RunCommand> = fc.oneof(
  fc.record({ kind: fc.constant('change-section' as const), section: anyName, to: anyName }),
  fc.record({
    kind: fc.constant('open-issue' as const),
    issue: anyName,
    severity: fc.constantFrom('blocker' as const, 'error' as const, 'warning' as const),
    message: fc.constant('look'),
  }),
  fc.record({ kind: fc.constant('resolve-issue' as const), issue: anyName }),
  fc.record({
    kind: fc.constant('link-commit' as const),
    sha: fc.constantFrom('a'.repeat(40), 'b'.repeat(40)),
  }),
  fc.record({
    kind: fc.constant('discard-tail' as const),
    bytes: fc.constant(7),
    sha256: anyHash,
  }),
)

const endings: fc.Arbitrary<RunCommand> = fc.record({
  kind: fc.constantFrom('fail' as const, 'cancel' as const),
  reason: fc.constant('enough'),
})

/** Steps that move the run, and seldom end it. */
export const anyMoves: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 20, arbitrary: advance },
    { weight: 8, arbitrary: validation },
    { weight: 3, arbitrary: rewind },
    { weight: 1, arbitrary: anyMove },
  ),
  { maxLength: 120, size: 'max' },
)

/** Steps of every kind. */
export const anyHistory: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: advance },
    { weight: 4, arbitrary: validation },
    { weight: 2, arbitrary: rewind },
    { weight: 1, arbitrary: anyMove },
    { weight: 6, arbitrary: artifacts },
    { weight: 6, arbitrary: items },
    { weight: 4, arbitrary: notes },
    { weight: 1, arbitrary: endings },
  ),
  { maxLength: 60, size: 'max' },
)

/** Takes one step, a second after the last. */
export function take(script: RunScript, step: Step) {
  script.clock.advance(1000)
  return script.applyCommand(step.kind === 'advance' ? commandFor(script, step.pick) : step)
}

/** Plays a whole history. */
export function play(steps: readonly Step[], maxFixAttempts?: number): RunScript {
  const script = newRun(maxFixAttempts)
  for (const step of steps) take(script, step)
  return script
}

function commandFor(script: RunScript, pick: number): RunCommand {
  const { run_state: state, validation: last } = script.run
  if (state === 'VALIDATING' && last === null) {
    return { kind: 'record-validation', ok: pick % 2 === 0 }
  }
  const ways = targetsOf(state).filter((to) => to !== 'FAILED' && to !== 'CANCELLED')
  return { kind: 'move', to: ways[pick % ways.length] ?? 'DONE' }
}
