/**
 * Given, when, then, for the rules of a lifecycle or of a run machine: given a history, when
 * something is asked for, then it leads to a state or is refused. The rules are pure, so nothing
 * here needs a store or a time that passes. Assertions are those of Node, for any test runner.
 *
 *   givenJob(standard, (job) => { job.create(); job.claim() })
 *     .when((job) => job.tell({ kind: 'release', fence: job.fence }, { actor: 'worker' }))
 *     .thenState('queued')
 *
 * Every `when` begins with the same history anew.
 */
import assert from 'node:assert/strict'
import type { PawlError } from '../core/errors.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { RunMachine } from '../core/run/machine.ts'
import { JobScript } from './job-script.ts'
import { RunScript } from './run-script.ts'

/** What was decided, in a job or in a run. */
type Decided = { readonly kind: string; readonly error?: PawlError }

/** Where a script is. */
interface Place {
  /** Nothing before the first record. */
  readonly state: string | undefined
  readonly written: number
}

/** A history, and what may be asked for after it. */
export interface Given<S> {
  /** Asks for something; the function is given the script and returns what was decided. */
  when(act: (script: S) => Decided): Then
}

/** What came of it. Each word throws an `AssertionError` where it does not hold. */
export interface Then {
  /** It was accepted and led to this state. */
  thenState(state: string): Then
  /** It was the same already: nothing was written. */
  thenSame(): Then
  /** It was refused with this code, and nothing was written. */
  thenRefused(code: string): Then
}

/** A history of a job; one that was refused on its way is no history, and throws. */
export function givenJob(
  lifecycle: Lifecycle,
  history: (job: JobScript) => void = () => {},
): Given<JobScript> {
  const look = ({ facts }: JobScript) => ({ state: facts.at(-1)?.to, written: facts.length })
  return given(() => new JobScript(lifecycle), history, look)
}

/** A history of a run; one that was refused on its way is no history, and throws. */
export function givenRun(
  machine: RunMachine,
  history: (run: RunScript) => void = () => {},
): Given<RunScript> {
  const look = (script: RunScript) => {
    const written = script.events.length
    return { state: written === 0 ? undefined : script.run.run_state, written }
  }
  return given(() => new RunScript(machine), history, look)
}

function given<S extends { readonly refusals: readonly PawlError[] }>(
  make: () => S,
  history: (script: S) => void,
  look: (script: S) => Place,
): Given<S> {
  return {
    when(act) {
      const script = make()
      history(script)
      assert.deepEqual(script.refusals.map(String), [], 'the history was refused')
      const before = look(script)
      const decided = act(script)
      return thenOf(decided, before, look(script))
    },
  }
}

function thenOf(decided: Decided, before: Place, after: Place): Then {
  const answer = `it was answered ${decided.error?.message ?? decided.kind}`
  const then: Then = {
    thenState(state) {
      assert.ok(decided.kind !== 'rejected' && decided.kind !== 'same', answer)
      assert.equal(after.state, state)
      return then
    },
    thenSame() {
      assert.equal(decided.kind, 'same', answer)
      assert.deepEqual(after, before)
      return then
    },
    thenRefused(code) {
      assert.equal(decided.kind, 'rejected', answer)
      assert.equal(decided.error?.code, code)
      assert.deepEqual(after, before)
      return then
    },
  }
  return then
}
