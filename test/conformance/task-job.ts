// Tasks of R3, for its conformance tests.
import {
  type Command,
  classify,
  type Decision,
  type Fence,
  type JobView,
  policyFor,
  task,
  viewOf,
} from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { LEASE_MS } from './played-job.ts'

/** The task in the field names of the document. */
export function viewed(script: JobScript): JobView {
  return viewOf(task, script.job)
}

/** The worker is gone, and somebody finds the expired lease. */
export function expire(script: JobScript): Decision {
  script.clock.advance(LEASE_MS)
  return script.applyCommand({ kind: 'expire', fence: script.fence }, { actor: 'engine' })
}

/** The task is given back. */
export function release(script: JobScript): Decision {
  return script.applyCommand({ kind: 'release', fence: script.fence }, { actor: 'worker' })
}

/** A pending task with this bound on its tries. */
export function taskWith(maxTries: number): JobScript {
  const script = new JobScript(task)
  script.create({ policy: policyFor(task, { crashesMax: maxTries - 1 }) })
  return script
}

/** Everything that a holder may say of its task. */
export function verbsOf(fence: Fence): Command[] {
  return [
    { kind: 'start', fence },
    { kind: 'step', fence, name: 'a', n: 1 },
    { kind: 'commit', fence },
    { kind: 'fail', fence, failure: classify(new Error('late')) },
    { kind: 'release', fence },
    { kind: 'cancel', fence },
  ]
}
