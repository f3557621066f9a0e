// Processes that are killed while a handler enqueues jobs, outside of its commit and inside of it.
import { defineJob } from 'pawl'
import { expect, it } from 'vitest'
import { runChild } from '../../processes/children.ts'
import { brokenPromises } from '../../processes/inspect.ts'
import { PLACES } from './places.ts'

const timeout = 60_000
const PROGRAM = new URL('enqueuer.mjs', import.meta.url)
const parent = defineJob({ name: 'parent' })

it.each(PLACES)(
  'on $name a killed handler enqueues nothing twice',
  { timeout },
  async ({ place }) => {
    const { store, pawl } = await place()
    const { id } = await pawl.enqueue(parent, null)
    for (const dies of ['outside', 'inside']) {
      expect(await runChild(PROGRAM, { store, dies })).toMatchObject({ signal: 'SIGKILL' })
      // What was enqueued in the commit is gone with it.
      expect(await pawl.jobs.count({ type: 'child' })).toBe(1)
    }
    expect(await runChild(PROGRAM, { store, dies: 'never' })).toMatchObject({ code: 0, stderr: '' })
    const children: string[] = []
    for await (const job of pawl.jobs.list({ type: 'child' })) {
      children.push((await pawl.store.payloads(job.id))?.input ?? '')
      expect((await pawl.explain(job.id)).enqueuedBy).toBe(id)
    }
    expect(children.sort()).toEqual(['"inside"', '"outside"'])
    expect(await pawl.jobs.get(id)).toMatchObject({ attempt: 3, crashes: 2, outcome: 'succeeded' })
    expect(await brokenPromises(pawl.store)).toEqual([])
  },
)
