// Promises that a handler forgets: they never end the process, and each is reported with its job.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import type { JobContext } from 'pawl'
import type { FailureInfo } from 'pawl/telemetry'
import { describe, expect, it, onTestFinished } from 'vitest'
import { defineJob } from '../../src/engine/define-job.ts'
import { HandedPromises, type Leftover } from '../../src/engine/worker/handed.ts'
import { EngineBench } from './bench.ts'
import { keptLog } from './logbook.ts'

describe('a promise that a handler did not await', () => {
  const play = async (run: (context: JobContext<unknown>, ended: Promise<void>) => unknown) => {
    const { lines, logger } = keptLog()
    const errors: [unknown, FailureInfo][] = []
    const onError = (error: unknown, info: FailureInfo) => errors.push([error, info])
    let end = () => {}
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    const job = defineJob({ name: 'hasty', retry: { max: 0 }, run: (c) => run(c, ended) })
    const bench = await EngineBench.open([job], undefined, { logger, onError })
    await bench.work({ id: 'w1' })
    const handle = await bench.pawl.enqueue(job, null)
    const outcome = await bench.finish(handle.result())
    end()
    const found = () => bench.events.filter(({ type }) => type === 'leftover')
    await bench.until(() => found().length > 0)
    return { id: handle.id, outcome, bench, errors, lines, found }
  }

  it('and that rejects later is reported with its job and handed to onError', async () => {
    const late = new Error('too late')
    const { id, outcome, found, errors, lines, bench } = await play(({ step }, ended) => {
      void step('charge', async () => {
        await ended
        throw late
      })
      return 'done'
    })
    expect(outcome).toMatchObject({ kind: 'succeeded', output: 'done' })
    await bench.until(() => found().length === 2)
    const what = 'step "charge"'
    const common = { type: 'leftover', worker: 'w1', job: { id, attempt: 1 }, what }
    expect(found()).toMatchObject([
      { ...common, problem: 'running' },
      { ...common, problem: 'rejected', error: late },
    ])
    const info = { kind: 'leftover', jobId: id, attempt: 1, subject: what }
    expect(errors).toMatchObject([[late, info]])
    const said = lines.filter(({ fields }) => String(fields.event).startsWith('job.left_'))
    expect(said.map(({ level }) => level)).toEqual(['warn', 'error'])
    expect(said[1]?.fields).toMatchObject({ job_id: id, what, error: 'Error: too late' })
  })

  it('and that has rejected before the end is reported at the end', async () => {
    const { found } = await play(async ({ step }) => {
      void step('charge', () => {
        throw new Error('at once')
      })
      await step('other', () => 1)
    })
    expect(found()).toMatchObject([{ problem: 'rejected', what: 'step "charge"' }])
  })

  it('of a statement in a commit is reported, too', async () => {
    const { found } = await play(({ commit }) =>
      commit((tx) => {
        void tx.query('SELECT nonsense')
      }),
    )
    expect(found()).toMatchObject([{ problem: 'rejected', what: 'tx.query' }])
  })

  it('of a commit that fails is reported, too', async () => {
    const { found, outcome } = await play(async ({ commit, step }) => {
      void commit(() => {
        throw new Error('no')
      })
      await step('other', () => 1)
    })
    expect(outcome.kind).toBe('succeeded')
    expect(found()).toMatchObject([{ problem: 'rejected', what: 'commit' }])
  })
})

describe('promises handed to a handler', () => {
  const handed = () => {
    const found: Leftover[] = []
    return { found, promises: new HandedPromises((leftover) => void found.push(leftover)) }
  }
  const failing = () => Promise.reject(new Error('no'))
  const turn = () =>
    once(new EventTarget(), 'x', { signal: AbortSignal.timeout(5) }).catch(() => {})

  it('that are awaited, combined or caught are not reported', async () => {
    const { found, promises } = handed()
    await promises.give('a', failing()).catch(() => {})
    await Promise.allSettled([promises.give('b', failing()), promises.give('c', failing())])
    await expect(promises.give('d', failing())).rejects.toThrow('no')
    expect(await promises.give('e', Promise.resolve(5))).toBe(5)
    promises.end(true)
    await turn()
    expect(found).toEqual([])
  })

  it('that are awaited long after they have rejected are not reported', async () => {
    const { found, promises } = handed()
    const late = promises.give('a', failing())
    await turn()
    await expect(late).rejects.toThrow('no')
    promises.end(true)
    expect(found).toEqual([])
  })

  it('are reported once if what was made from them is forgotten', async () => {
    const { found, promises } = handed()
    void promises.give('a', failing()).then(() => {})
    void promises.give('b', Promise.resolve()).then(() => {
      throw new Error('in then')
    })
    await turn()
    promises.end(false)
    void promises.give('c', failing()).finally(() => {})
    await turn()
    expect(found).toMatchObject([
      { problem: 'rejected', what: 'a' },
      { problem: 'rejected', what: 'b' },
      { problem: 'rejected', what: 'c' },
    ])
  })

  it('that still run are reported if the handler returned, or if nothing waits for them', () => {
    const never = new Promise<never>(() => {})
    const thrown = handed()
    void thrown.promises.give('waited for', never).then(() => {})
    void thrown.promises.give('forgotten', never)
    thrown.promises.end(false)
    expect(thrown.found).toEqual([{ problem: 'running', what: 'forgotten' }])
    const returned = handed()
    void returned.promises.give('waited for', never).then(() => {})
    returned.promises.end(true)
    expect(returned.found).toEqual([{ problem: 'running', what: 'waited for' }])
  })
})

const PROGRAM = `
import { createPawl, defineJob } from '__PAWL__'
const job = defineJob({
  name: 'hasty',
  run: ({ step }) => {
    void step('forgotten', async () => {
      throw new Error('nobody waits for this')
    })
    return 'done'
  },
})
const said = []
const error = ({ event, job_id, what }) => said.push({ event, job_id, what })
const logger = { debug() {}, info() {}, warn() {}, error }
const pawl = await createPawl({ store: '__STORE__', jobs: [job], logger })
await pawl.work({ checkup: '1h' })
const first = await pawl.enqueue(job, null)
await first.result()
const second = await pawl.enqueue(job, null)
const outcome = await second.result()
await pawl.close()
console.log(JSON.stringify({ first: first.id, kind: outcome.kind, said }))
`

it('a forgotten step does not end the process of its worker', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'leftover-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const pawl = pathToFileURL(join(import.meta.dirname, '../../dist/index.js')).href
  const store = `sqlite:${join(folder, 'jobs.db')}`
  const program = join(folder, 'program.mjs')
  writeFileSync(program, PROGRAM.replace('__PAWL__', pawl).replace('__STORE__', store))
  const { stdout } = await promisify(execFile)(process.execPath, [program], { timeout: 60_000 })
  const { first, kind, said } = JSON.parse(stdout) as {
    first: string
    kind: string
    said: { event: string; job_id: string; what: string }[]
  }
  expect(kind).toBe('succeeded')
  const expected = { event: 'job.left_rejected', job_id: first, what: 'step "forgotten"' }
  expect(said).toContainEqual(expected)
})
