// Work items that jobs do: the queue and the run agree, also after an interruption.
import { createPawl, defineJob, type Pawl, Terminal, typed } from 'pawl'
import type { RunContext } from 'pawl/runs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { freshRuns, outcomeOf, releaseOf } from './bench.ts'

interface Told {
  readonly calls: string[]
  isMended: boolean
}

function jobOf(told: Told) {
  return defineJob({
    name: 'shout',
    input: typed<{ text: string }>(),
    retry: { max: 0 },
    run: ({ input }) => {
      told.calls.push(input.text)
      if (!told.isMended && input.text === 'bad') throw new Terminal('no voice')
      if (!told.isMended && input.text === 'weak') throw new Error('no breath')
      return input.text.toUpperCase()
    },
  })
}

async function pawlWith(job: ReturnType<typeof jobOf>): Promise<Pawl> {
  const pawl = await createPawl({ store: 'sqlite::memory:', jobs: [job] })
  onTestFinished(() => pawl[Symbol.asyncDispose]())
  await pawl.work()
  return pawl
}

describe('a work item that a job does', () => {
  it('returns the result of the job, and is enqueued once', async () => {
    const told: Told = { calls: [], isMended: true }
    const job = jobOf(told)
    const pawl = await pawlWith(job)
    const results: string[] = []
    const ask = async (run: RunContext) => {
      const input = { text: 'hello' }
      results.push(await run.work('shout', { job, input }))
    }
    const runs = await freshRuns({ pawl })
    const { run } = await outcomeOf(runs, releaseOf({ build: ask, built: ask }))
    expect(results).toEqual(['HELLO', 'HELLO'])
    expect(told.calls).toEqual(['hello'])
    expect(run.work_items.shout).toMatchObject({ worker: 'queue:default', status: 'finished' })
    expect((await pawl.store.list({}, { limit: 10 })).items).toHaveLength(1)
  })

  it('finds the job that it had enqueued, when the run is resumed', async () => {
    const told: Told = { calls: [], isMended: true }
    const job = jobOf(told)
    const pawl = await createPawl({ store: 'sqlite::memory:', jobs: [job] })
    onTestFinished(() => pawl[Symbol.asyncDispose]())
    const build = (run: RunContext) => run.work('shout', { job, input: { text: 'late' } })
    const definition = releaseOf({ build })
    const runs = await freshRuns({ pawl, runs: [definition] })
    const stop = new AbortController()
    const handle = await runs.start(definition, { runId: 'r1', signal: stop.signal })
    const isEnqueued = async () => (await pawl.store.list({}, { limit: 10 })).items.length === 1
    await expect.poll(isEnqueued).toBe(true)
    stop.abort()
    expect(await handle.result()).toMatchObject({ kind: 'stopped', run: { run_state: 'build' } })
    await pawl.work()
    expect(await (await runs.resume('r1')).result()).toMatchObject({ kind: 'done' })
    expect(told.calls).toEqual(['late'])
    expect((await runs.show('r1')).run.work_items.shout).toMatchObject({ attempts: 2 })
  })

  it('that failed, or is forced, gets another job', async () => {
    const told: Told = { calls: [], isMended: false }
    const job = jobOf(told)
    const pawl = await pawlWith(job)
    const build = (run: RunContext) => run.work('shout', { job, input: { text: 'bad' } })
    let isStopped = true
    const built = () => {
      if (isStopped) throw new Error('stop')
    }
    const definition = releaseOf({ build, built })
    const runs = await freshRuns({ pawl, runs: [definition] })
    const outcome = await outcomeOf(runs, definition)
    expect(outcome).toMatchObject({ kind: 'stopped', error: { code: 'E_WORK_JOB_FAILED' } })
    expect(outcome.run.work_items.shout).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('no voice'),
    })
    told.isMended = true
    expect(await (await runs.resume('r1')).result()).toMatchObject({ run: { run_state: 'built' } })
    expect(told.calls).toEqual(['bad', 'bad'])
    isStopped = false
    const forced = await runs.resume('r1', { force: ['shout'] })
    expect(await forced.result()).toMatchObject({ kind: 'done' })
    expect(told.calls).toEqual(['bad', 'bad', 'bad'])
  })

  it('whose job is parked waits for an operator, and continues with the same job', async () => {
    const told: Told = { calls: [], isMended: false }
    const job = jobOf(told)
    const pawl = await pawlWith(job)
    const build = (run: RunContext) => run.work('shout', { job, input: { text: 'weak' } })
    const definition = releaseOf({ build })
    const runs = await freshRuns({ pawl, runs: [definition] })
    const parked = { kind: 'stopped', error: { details: { outcome: 'parked' } } }
    expect(await outcomeOf(runs, definition)).toMatchObject(parked)
    expect(await (await runs.resume('r1')).result()).toMatchObject(parked)
    told.isMended = true
    const [only] = (await pawl.store.list({}, { limit: 10 })).items
    await pawl.operator({ name: 'ada', reason: 'mended' }).retry(only?.id ?? '')
    expect(await (await runs.resume('r1')).result()).toMatchObject({ kind: 'done' })
    expect(told.calls).toEqual(['weak', 'weak'])
    expect((await pawl.store.list({}, { limit: 10 })).items).toHaveLength(1)
  })

  it('without a queue is refused with an error', async () => {
    const job = jobOf({ calls: [], isMended: true })
    const build = (run: RunContext) => run.work('shout', { job, input: { text: 'x' } })
    const runs = await freshRuns()
    expect(await outcomeOf(runs, releaseOf({ build }))).toMatchObject({
      kind: 'stopped',
      error: { code: 'E_QUEUE_MISSING' },
    })
  })
})
