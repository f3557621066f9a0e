// Jobs of R2 in every state, for its conformance tests.
import { Retryable } from 'pawl'
import { document, viewOf } from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { expect } from 'vitest'
import { ask, fail, running, submitted } from './played-job.ts'

/** The document's non-terminal states. */
export const ACTIVE = ['CREATED', 'QUEUED', 'RUNNING', 'RETRYING']
/** The document's terminal states. */
export const ENDED = ['SUCCEEDED', 'FAILED']

/** A job in a state, by the shortest way there. */
export function jobIn(state: string): JobScript {
  if (state === 'CREATED') return heldBack()
  const script = state === 'QUEUED' ? submitted(document) : running(document)
  const ways: Record<string, string> = {
    RETRYING: 'fail retryably',
    SUCCEEDED: 'commit',
    FAILED: 'fail for good',
  }
  const way = ways[state]
  if (way !== undefined) ask(script, way)
  expect(script.job.state).toBe(state)
  return script
}

/** A job that was created and not yet submitted. */
export function heldBack(): JobScript {
  const script = new JobScript(document)
  script.create({ hold: true })
  return script
}

/** A running job that has been retried this often. */
export function retried(times: number): JobScript {
  const script = running(document)
  for (let n = 0; n < times; n++) {
    fail(script, new Retryable(`failure ${n + 1}`))
    backToWork(script)
  }
  return script
}

/** The delay has passed, and a worker claims the job again. */
export function backToWork(script: JobScript): void {
  script.clock.advance(1000)
  script.applyCommand({ kind: 'due' })
  script.claim()
}

/** The job in the field names of the document. */
export function viewed(script: JobScript) {
  return viewOf(document, script.job)
}
