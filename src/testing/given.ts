/**
 * Given/when/then tests for the rules of a lifecycle or of a run machine: given a history, when a
 * command is given, then it leads to a state or is rejected. The rules are pure, so a test needs
 * neither a store nor time. Assertions are those of Node, for any test runner.
 *
 *   givenJob(standard, (job) => { job.create(); job.claim() })
 *     .when((job) => job.applyCommand({ kind: 'release', fence: job.fence }, { actor: 'worker' }))
 *     .thenState('queued')
 *
 * Every `when` starts from a fresh copy of the history.
 */
import assert from 'node:assert/strict'
import type { PawlError } from '../core/errors.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { RunMachine } from '../core/run/machine.ts'
import { JobScript } from './job-script.ts'
import { RunScript } from './run-script.ts'

/** The decision on a command. */
type Decided = { readonly kind: string; readonly error?: PawlError }

interface Snapshot {
  /** Undefined before the first record. */
  readonly state: string | undefined
  readonly written: number
}

/** A history to which commands can be given. */
export interface Given<S> {
  /** Sends a command. The function receives the script and returns the decision. */
  when(act: (script: S) => Decided): Then
}

/** The result of a command. Each method throws an `AssertionError` if it does not hold. */
export interface Then {
  /** The command was accepted and led to this state. */
  thenState(state: string): Then
  /** The command changed nothing, and nothing was written. */
  thenSame(): Then
  /** The command was rejected with this code, and nothing was written. */
  thenRefused(code: string): Then
}

/** The history of a job. Throws if a command of the history is rejected. */
export function givenJob(
  lifecycle: Lifecycle,
  history: (job: JobScript) => void = () => {},
): Given<JobScript> {
  const look = ({ facts }: JobScript) => ({ state: facts.at(-1)?.to, written: facts.length })
  return given(() => new JobScript(lifecycle), history, look)
}

/** The history of a run. Throws if a command of the history is rejected. */
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
  look: (script: S) => Snapshot,
): Given<S> {
  return {
    when(act) {
      const script = make()
      history(script)
      assert.deepEqual(script.refusals.map(String), [], 'A command of the history was rejected')
      const before = look(script)
      const decided = act(script)
      return thenOf(decided, before, look(script))
    },
  }
}

function thenOf(decided: Decided, before: Snapshot, after: Snapshot): Then {
  const answer = `The answer was: ${decided.error?.message ?? decided.kind}`
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
