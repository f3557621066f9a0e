// Flows on both databases, under a time that the test owns.
import { type ChildOutcome, defineJob, settled, Terminal, typed } from 'pawl'
import { createTestPawl, type TestPawl } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { freshStoreDatabase } from '../support/postgres/databases.ts'

const STORES = [
  { name: 'SQLite', store: undefined },
  { name: 'PostgreSQL', store: freshStoreDatabase },
]
const ANN = { name: 'ann', reason: 'test' }

const failing = new Set<string>()
const ran: string[] = []

const render = defineJob({
  name: 'render',
  input: typed<{ page: number }>(),
  run: ({ input }) => {
    ran.push(`render ${input.page}`)
    if (failing.has(`render ${input.page}`)) throw new Terminal('no ink')
    return `page ${input.page}`
  },
})
const invoice = defineJob({
  name: 'invoice',
  input: typed<{ orderId: string }>(),
  run: ({ input }) => ({ invoiced: input.orderId }),
})
const notify = defineJob({
  name: 'notify',
  input: typed<{ to: string }>(),
  run: ({ input }) => {
    if (failing.has('notify')) throw new Terminal('no mail')
    return input.to
  },
})
const report = defineJob({
  name: 'report',
  input: typed<{ month: string }>(),
  after: { pages: [render], bill: invoice, mail: settled(notify) },
  run: ({ after, input }) => {
    ran.push('report')
    const { mail } = after
    const told = mail.kind === 'succeeded' ? mail.output : mail.kind
    return [input.month, ...after.pages, after.bill.invoiced, told].join(', ')
  },
})
const archive = defineJob({
  name: 'archive',
  after: { report },
  run: ({ after }) => `archived: ${after.report}`,
})

describe.each(STORES)('on $name', { timeout: 20_000 }, ({ store }) => {
  async function open(...jobs: readonly unknown[]): Promise<TestPawl> {
    failing.clear()
    ran.length = 0
    const own = store === undefined ? {} : { store: await store() }
    const all = jobs.length > 0 ? jobs : [render, invoice, notify, report, archive]
    const pawl = await createTestPawl({ jobs: all as never, ...own })
    onTestFinished(() => pawl.close())
    return pawl
  }

  const monthly = (test: TestPawl, options: { key?: string; pages?: number } = {}) => {
    const { pages: count = 2, ...own } = options
    return test.pawl.flow((f) => {
      const pages = Array.from({ length: count }, (_, i) => f.add(render, { page: i + 1 }))
      const bill = f.add(invoice, { orderId: 'o-1' })
      const mail = f.add(notify, { to: 'ann' })
      return f.add(report, { month: '11' }, { after: { pages, bill, mail } })
    }, own)
  }

  it('a job starts after what it comes after, with its outputs', async () => {
    const test = await open()
    const flow = await monthly(test)
    expect(flow.jobs).toHaveLength(5)
    expect(await flow.jobs[4]?.get()).toMatchObject({ type: 'report', attempt: 0 })
    expect(await flow.status()).toMatchObject({ kind: 'flow', size: 5, state: 'open' })
    await test.drain()
    expect(await flow.result()).toMatchObject({
      kind: 'succeeded',
      output: '11, page 1, page 2, o-1, ann',
    })
    expect(ran.slice(0, 2).sort()).toEqual(['render 1', 'render 2'])
    expect(ran.slice(2)).toEqual(['report'])
    expect(await flow.status()).toMatchObject({
      state: 'done',
      progress: { members: 5, succeeded: 5, failed: 0, live: 0 },
    })
  })

  it('an empty list is a dependency that is there at once', async () => {
    const test = await open()
    const flow = await monthly(test, { pages: 0 })
    await test.drain()
    expect(await flow.result()).toMatchObject({ output: '11, o-1, ann' })
  })

  it('`settled` receives the outcome of a job that failed', async () => {
    const test = await open()
    failing.add('notify')
    const flow = await monthly(test)
    await test.drain()
    expect(await flow.result()).toMatchObject({ output: '11, page 1, page 2, o-1, failed' })
  })

  it('a failed dependency parks the job, and its redrive releases it', async () => {
    const test = await open()
    failing.add('render 2')
    const flow = await monthly(test)
    await test.drain()
    expect(await flow.result()).toMatchObject({ kind: 'parked', reason: 'dependency_failed' })
    expect(await flow.status()).toMatchObject({ state: 'attention' })
    expect(ran).not.toContain('report')
    const page = flow.jobs[1]?.id as string
    const explained = await test.pawl.explain(flow.jobs[4]?.id as string)
    expect(explained).toMatchObject({ kind: 'parked', waitsFor: [page] })
    expect(explained.says).toContain('no ink')
    expect(explained.command).toBe(`pawl job retry ${page} --reason …`)
    failing.clear()
    expect(await test.pawl.flows.redrive(flow.id, ANN)).toMatchObject({ matched: 1, done: 1 })
    await test.drain()
    expect(await flow.result()).toMatchObject({ output: '11, page 1, page 2, o-1, ann' })
  })

  it.each([
    ['cancel', 'cancelled'],
    ['fail', 'failed'],
  ] as const)('onFailure: %s ends the job with its dependency', async (onFailure, kind) => {
    const single = defineJob({ name: 'single', after: { page: render }, run: () => 1 })
    const last = defineJob({
      name: 'last',
      after: { it: settled(single) },
      run: ({ after }) => after.it.kind,
    })
    const test = await open(render, single, last)
    failing.add('render 1')
    const flow = await test.pawl.flow((f) => {
      const page = f.add(render, { page: 1 })
      const it = f.add(single, null, { after: { page }, onFailure })
      return f.add(last, null, { after: { it } })
    })
    await test.drain()
    expect(await flow.jobs[1]?.result()).toMatchObject({ kind, reason: 'dependency_failed' })
    expect(await flow.result()).toMatchObject({ kind: 'succeeded', output: kind })
  })

  it('nothing starts a job before its dependencies', async () => {
    const test = await open()
    failing.add('render 1')
    const flow = await monthly(test)
    const last = flow.jobs[4]?.id as string
    const operator = test.pawl.operator(ANN)
    const refused = { code: 'E_DEPENDENCY_OPEN' }
    await expect(operator.retry(last)).rejects.toMatchObject(refused)
    await expect(operator.submit(last)).rejects.toMatchObject(refused)
    await expect(test.pawl.submit(last)).rejects.toMatchObject(refused)
    await test.drain()
    await expect(operator.redrive(last)).rejects.toMatchObject(refused)
    await operator.prioritise(last, 5)
    expect(ran).not.toContain('report')
  })

  it('explain follows a chain to its end', async () => {
    const test = await open()
    const flow = await test.pawl.flow((f) => {
      const pages = [f.add(render, { page: 1 }, { delay: '1h' })]
      const bill = f.add(invoice, { orderId: 'o-1' })
      const mail = f.add(notify, { to: 'ann' })
      const made = f.add(report, { month: '11' }, { after: { pages, bill, mail } })
      return f.add(archive, null, { after: { report: made } })
    })
    await test.drain()
    const ids = flow.jobs.map(({ id }) => id)
    const explained = await test.pawl.explain(ids[4] as string)
    expect(explained, explained.says).toMatchObject({
      kind: 'waiting',
      waitsFor: [ids[3], ids[0]],
    })
    expect(explained.says).toMatch(/It waits for job .* and through 1 job for job .*not due until/)
    expect(explained.command).toBe(`pawl job retry ${ids[0]} --reason …`)
    await test.advance('1h')
    await test.drain()
    expect(await flow.result()).toMatchObject({ output: 'archived: 11, page 1, o-1, ann' })
  })

  it('a flow with a key is made once', async () => {
    const test = await open()
    const first = await monthly(test, { key: 'report-11' })
    const second = await monthly(test, { key: 'report-11' })
    expect([first.created, second.created, second.id]).toEqual([true, false, first.id])
    expect(await test.pawl.jobs.count({})).toBe(5)
    await test.drain()
    expect(await second.result()).toMatchObject({ kind: 'succeeded' })
    expect(await test.pawl.flows.getByKey('report-11')).toMatchObject({ id: first.id, size: 5 })
    expect((await test.pawl.flows.list({ kind: 'flow' })).items).toHaveLength(1)
  })

  it('a flow in a transaction exists if it commits, and not if it is rolled back', async () => {
    const test = await open()
    const { pawl } = test
    const inside = (tx: unknown) =>
      pawl.flow(
        (f) => {
          const bill = f.add(invoice, { orderId: 'o-1' })
          const mail = f.add(notify, { to: 'ann' })
          return f.add(report, { month: '11' }, { after: { pages: [], bill, mail } })
        },
        { tx: tx as never },
      )
    const kept = await pawl.transaction((tx) => inside(tx))
    let lost: Awaited<ReturnType<typeof inside>> | undefined
    const rolledBack = pawl.transaction(async (tx) => {
      lost = await inside(tx)
      throw new Error('no')
    })
    await expect(rolledBack).rejects.toThrow('no')
    await test.drain()
    expect(await kept.result()).toMatchObject({ kind: 'succeeded' })
    await expect(lost?.status()).rejects.toMatchObject({ code: 'E_FLOW_NOT_FOUND' })
    await expect(lost?.result()).rejects.toMatchObject({ code: 'E_JOB_NOT_FOUND' })
  })

  it('a rejected node leaves nothing of the flow', async () => {
    const test = await open()
    const bad = test.pawl.flow((f) => {
      f.add(invoice, { orderId: 'o-1' })
      f.add(render, { page: 1 }, { tags: Array.from({ length: 33 }, (_, i) => `t${i}`) })
    })
    await expect(bad).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
    expect(await test.pawl.jobs.count({})).toBe(0)
    expect((await test.pawl.flows.list()).items).toEqual([])
  })

  it('cancel ends all jobs that have not ended', async () => {
    const test = await open()
    const flow = await monthly(test)
    expect(await flow.cancel()).toBe(5)
    await test.drain()
    expect(ran).toEqual([])
    expect(await flow.status()).toMatchObject({ state: 'done', progress: { cancelled: 5 } })
    expect(await flow.cancel()).toBe(0)
    const absent = '00000000-0000-7000-8000-00000000ffff'
    await expect(test.pawl.flows.cancel(absent)).rejects.toMatchObject({ code: 'E_FLOW_NOT_FOUND' })
    expect(await test.pawl.flows.get(absent)).toBeUndefined()
  })

  it('a forced job does not run without its dependencies: it is parked', async () => {
    const test = await open()
    failing.add('render 1')
    const flow = await monthly(test)
    await test.drain()
    const last = flow.jobs[4]?.id as string
    await test.pawl.operator(ANN).force(last, 'queued')
    await test.drain()
    expect(await flow.jobs[4]?.get()).toMatchObject({
      state: 'quarantined',
      error: { code: 'E_DEPENDENCY_UNMET' },
    })
    expect(ran).not.toContain('report')
  })

  it('emits events, log lines and measurements of releases and failed dependencies', async () => {
    const seen: unknown[] = []
    const lines: string[] = []
    const counted: string[] = []
    const own = store === undefined ? {} : { store: await store() }
    failing.clear()
    const log = (fields: { event?: string }) => lines.push(String(fields.event))
    const test = await createTestPawl({
      jobs: [render, invoice, notify, report],
      onEvent: (event) => {
        if (event.type === 'arrived') seen.push([event.job.type, event.result])
      },
      logger: { debug: log, info: log, warn: log, error: log } as never,
      metrics: {
        count: (name, labels) => counted.push(`${name} ${labels.result ?? ''}`),
        observe() {},
        gauge() {},
      },
      ...own,
    })
    onTestFinished(() => test.close())
    failing.add('render 1')
    const flow = await monthly(test)
    await test.drain()
    failing.clear()
    await test.pawl.flows.redrive(flow.id, ANN)
    await test.drain()
    expect(seen).toEqual([
      ['report', 'dependency-failed'],
      ['report', 'released'],
    ])
    expect(lines.filter((line) => line.startsWith('job.'))).toEqual(
      expect.arrayContaining(['job.not_released', 'job.released']),
    )
    expect(counted).toEqual(
      expect.arrayContaining([
        'pawl_dependents_total dependency-failed',
        'pawl_dependents_total released',
      ]),
    )
  })
})

describe('a flow that is not sound', () => {
  it('is refused by the compiler and by the library, and nothing is written', async () => {
    const limited = defineJob({ name: 'limited', singleton: { mode: 'skip' } })
    const test = await createTestPawl({ jobs: [render, invoice, notify, report, limited] })
    onTestFinished(() => test.close())
    const { pawl } = test
    const refused = async (build: Parameters<typeof pawl.flow>[0], why: string | RegExp) => {
      await expect((async () => pawl.flow(build))()).rejects.toThrow(why)
    }
    await refused(() => {}, 'must have a job')
    // @ts-expect-error: `after` is missing.
    await refused((f) => f.add(report, { month: '11' }), 'comes after other jobs')
    await refused((f) => {
      // @ts-expect-error: a name is missing, and a list is no node.
      f.add(report, { month: '11' }, { after: { pages: [], bill: [] } })
    }, 'must be one node')
    await refused((f) => {
      const page = f.add(render, { page: 1 })
      // @ts-expect-error: one node is no list.
      f.add(report, { month: '1' }, { after: { pages: page, bill: page, mail: page } })
    }, 'must be a list of nodes')
    await refused((f) => {
      const page = f.add(render, { page: 1 })
      // @ts-expect-error: a page is no bill.
      f.add(report, { month: '1' }, { after: { pages: [page], bill: page, mail: page } })
    }, 'must be of type invoice')
    let stranger: ReturnType<typeof first> | undefined
    const first = (f: Parameters<Parameters<typeof pawl.flow>[0]>[0]) => f.add(render, { page: 1 })
    await pawl.flow((f) => {
      stranger = first(f)
    })
    const other = defineJob({ name: 'other', after: { page: render } })
    await refused(
      (f) => f.add(other, null, { after: { page: stranger as never } }),
      'must be nodes of this flow',
    )
    await refused((f) => {
      const page = f.add(render, { page: 1 })
      const twice = defineJob({ name: 'twice', after: { pages: [render] } })
      f.add(twice, null, { after: { pages: [page, page] } })
    }, 'must not name a node twice')
    await refused((f) => f.add(limited, null), 'must not have rateLimit, debounce or singleton')
    // @ts-expect-error: the flow has the key.
    await refused((f) => f.add(render, { page: 1 }, { key: 'k' }), 'key')
    // @ts-expect-error: an outcome is no node.
    await refused(() => ({ kind: 'failed' }) as ChildOutcome, 'must return a node of this flow')
    // @ts-expect-error: there is no such option.
    await expect(pawl.flow((f) => f.add(render, { page: 1 }), { keys: 1 })).rejects.toThrow('keys')
    expect(await pawl.jobs.count({})).toBe(1)
  })
})
