// Given, when, then: rules of lifecycles and machines, tested without a store.
import { AssertionError } from 'node:assert'
import { standard } from 'pawl/rules'
import { documentationRun } from 'pawl/runs'
import { givenJob, givenRun, type JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'

const release = (job: JobScript) =>
  job.applyCommand({ kind: 'release', fence: job.fence }, { actor: 'worker' })

const running = givenJob(standard, (job) => {
  job.create()
  job.claim()
})

describe('givenJob', () => {
  it('begins with nothing, or with a history', () => {
    givenJob(standard)
      .when((job) => job.create())
      .thenState('queued')
    running.when(release).thenState('queued')
  })

  it('begins every question with the same history', () => {
    running.when(release).thenState('queued')
    running.when((job) => job.applyCommand({ kind: 'cancel' })).thenState('cancelled')
    running.when(release).thenState('queued')
  })

  it('tells refusals by their codes, and what is the same already', () => {
    running.when((job) => job.claim()).thenRefused('E_STALE_FENCE')
    const claimed = givenJob(standard, (job) => {
      job.create()
      job.claim({ start: false })
      job.applyCommand({ kind: 'start', fence: job.fence }, { actor: 'worker' })
    })
    claimed
      .when((job) => job.applyCommand({ kind: 'start', fence: job.fence }, { actor: 'worker' }))
      .thenSame()
  })

  it('fails where something else came of it', () => {
    expect(() => running.when(release).thenState('failed')).toThrow(AssertionError)
    expect(() => running.when(release).thenSame()).toThrow(AssertionError)
    expect(() => running.when(release).thenRefused('E_STALE_FENCE')).toThrow(AssertionError)
    const refused = running.when((job) => job.claim())
    expect(() => refused.thenState('running')).toThrow(AssertionError)
    expect(() => refused.thenRefused('E_COMMITTED')).toThrow(AssertionError)
    expect(() => refused.thenSame()).toThrow(AssertionError)
  })

  it('does not take a history that was refused on its way', () => {
    const twice = givenJob(standard, (job) => {
      job.create()
      job.claim()
      job.claim()
    })
    expect(() => twice.when(release)).toThrow('A command of the history was rejected')
  })
})

describe('givenRun', () => {
  const planned = givenRun(documentationRun, (run) => {
    run.applyCommand({ kind: 'create' })
    run.walk('CLONED_INPUTS')
  })

  it('follows the machine of a run, and tells refusals by their codes', () => {
    givenRun(documentationRun)
      .when((run) => run.applyCommand({ kind: 'create' }))
      .thenState('CREATED')
    planned.when((run) => run.walk('INGESTED')).thenState('INGESTED')
    planned.when((run) => run.walk('DONE')).thenRefused('E_TRANSITION_INVALID')
    expect(() => planned.when((run) => run.walk('DONE')).thenState('DONE')).toThrow(AssertionError)
  })

  it('does not take a history that was refused on its way', () => {
    const wrong = givenRun(documentationRun, (run) => void run.walk('DONE'))
    expect(() => wrong.when((run) => run.walk('DONE'))).toThrow(
      'A command of the history was rejected',
    )
  })
})
