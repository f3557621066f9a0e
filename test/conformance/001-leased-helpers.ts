/** A job of R1 at each point of its way, and what to say to it there. */
import { type Command, type Execution, executionsOf, type Fence, leased } from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { commit } from '../support/job-answers.ts'

/** A claim that nobody ever held. */
export const FOREIGN_CLAIM = '99999999-0000-7000-8000-000000000000'

/** A job that was just submitted. */
export function submitted(): JobScript {
  const script = new JobScript(leased)
  script.create()
  return script
}

/** A job whose execution is LEASED and not yet started. */
export function leasedJob(): JobScript {
  const script = submitted()
  script.claim({ start: false })
  return script
}

/** A job whose execution is IN_PROGRESS. */
export function startedJob(): JobScript {
  const script = leasedJob()
  script.applyCommand({ kind: 'start', fence: script.fence }, { actor: 'worker' })
  return script
}

/** A job whose execution is COMMITTED, with an effect still to deliver. */
export function committedJob(): JobScript {
  const script = startedJob()
  commit(script, 1)
  return script
}

/** A job that is SUCCEEDED. */
export function doneJob(): JobScript {
  const script = committedJob()
  script.applyCommand({ kind: 'done', attempt: 1 }, { actor: 'engine' })
  return script
}

/** The record of the latest execution. */
export function lastExecution(script: JobScript): Execution {
  const last = executionsOf(script.facts).at(-1)
  if (last === undefined) throw new Error('there is no execution yet')
  return last
}

/** Every command that needs the fence of the holder, `done` aside. */
export function holderCommands(fence: Fence): Command[] {
  const failure = { class: 'retryable', kind: 'error', message: 'it broke' } as const
  return [
    { kind: 'start', fence },
    { kind: 'step', fence, name: 'fetch', n: 1 },
    { kind: 'commit', fence },
    { kind: 'fail', fence, failure },
    { kind: 'fail', fence, failure: { ...failure, kind: 'timeout' } },
    { kind: 'release', fence },
    { kind: 'cancel', fence },
  ]
}
