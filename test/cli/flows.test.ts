// Flows and batches from the command line, and what `pawl job show` says about links.
import { createPawl, type Pawl } from 'pawl'
import { describe, expect, it } from 'vitest'
import { group, makeFlow, reporting } from '../support/made-flows.ts'
import { freshStoreDatabase } from '../support/postgres/databases.ts'
import { linesOf, Place } from './pawl.ts'

const STORES = [
  { name: 'SQLite', open: async () => new Place() },
  { name: 'PostgreSQL', open: async () => new Place(await freshStoreDatabase()) },
]
const NOBODY = '00000000-0000-7000-8000-00000000dead'
const WHY = ['--reason', 'INC-7'] as const

interface Line {
  readonly kind: string
  readonly n?: number
  readonly status?: string
  readonly critical?: boolean | readonly number[]
}

/** Works until so many jobs of a flow have succeeded, and so many are parked. */
async function workUntil(
  pawl: Pawl,
  id: string,
  wanted: { readonly succeeded: number; readonly parked: number },
): Promise<void> {
  const worker = await pawl.work()
  await expect
    .poll(async () => await pawl.store.flows.progress(id), { timeout: 60_000 })
    .toMatchObject(wanted)
  await worker.stop()
}

describe.each(STORES)('pawl flow on $name', { timeout: 180_000 }, ({ open }) => {
  it('lists flows, and shows what waits for what', async () => {
    const place = await open()
    const { jobs, nodes } = reporting()
    await using pawl = await createPawl({ store: place.store, jobs })
    const { id, jobs: ids } = await makeFlow(pawl, nodes, { key: 'report-11' })
    await workUntil(pawl, id, { succeeded: 2, parked: 1 })
    const listed = await place.ok('flow', 'list', '--state', 'attention')
    expect(listed).toMatch(
      new RegExp(`^${id}\tflow\tattention\t2 of 4 succeeded, 1 parked, 1 live\t\\S+\treport-11\n$`),
    )
    expect(await place.json('flow', 'list', '--kind', 'batch')).toEqual([])
    expect(await place.json('flow', 'list', '--key', 'report-11')).toMatchObject([{ id, size: 4 }])
    const text = await place.ok('flow', 'show', id)
    expect(text).toContain(`flow ${id}  attention\n  key        report-11\n`)
    const row = (n: number) => text.split('\n').find((line) => line.split('\t')[1] === String(n))
    expect(row(0)).toMatch(/^ \t0\trender\tsucceeded\t-\t\+0ms\t\+\S+\t\+\S+\t/)
    expect(row(2)).toMatch(/^\*\t2\tinvoice\tparked\t-\t/)
    expect(row(3)).toMatch(/^\*\t3\treport\twaits\tpages 0 \+.*, pages 1 \+.*, bill 2\t-\t-\t-\t/)
    expect(text).toMatch(/\ncritical path {2}invoice #2 \(parked for .*\) → report #3 \(waits\)\n/)
    const lines = linesOf<Line>(await place.ok('flow', 'show', id, '--json'))
    expect(lines[0]).toMatchObject({ kind: 'flow', flow: { id }, critical: [2, 3] })
    expect(lines.slice(1).map(({ n, status, critical }) => [n, status, critical])).toEqual([
      [0, 'succeeded', false],
      [1, 'succeeded', false],
      [2, 'parked', true],
      [3, 'waits', true],
    ])
    const mermaid = await place.ok('flow', 'show', id, '--mermaid')
    expect(mermaid).toMatch(/^flowchart LR\n {2}b0\["render #35;0<br\/>succeeded in /)
    expect(mermaid).toContain('  b2 ==> b3\n')

    const waiting = await place.ok('job', 'show', ids[3] ?? '')
    expect(waiting).toContain(`  flow       ${id}  (pawl flow show ${id})\n`)
    expect(waiting).toMatch(/ {2}after {6}pages: 2 succeeded; bill: 1 open\n/)
    expect(waiting).toContain(`  open       invoice ${ids[2]} quarantined\n`)
    expect(await place.ok('job', 'show', ids[2] ?? '')).toContain(`  awaited by report ${ids[3]} `)
    const [shown] = await place.json<{ links: object }>('job', 'show', ids[3] ?? '')
    expect(shown?.links).toMatchObject({ flow: { id }, waitsFor: [{ id: ids[2] }] })
    expect(await place.json('job', 'list', '--flow', id)).toHaveLength(4)
    expect(await place.ok('stats')).toContain(
      '! flows with a parked job: 1 (pawl flow list --state attention)',
    )
  })

  it('redrives what failed, and shows a flow as it was', async () => {
    const place = await open()
    const { jobs, nodes, repair } = reporting()
    await using pawl = await createPawl({ store: place.store, jobs })
    const { id, jobs: ids } = await makeFlow(pawl, nodes)
    await workUntil(pawl, id, { succeeded: 2, parked: 1 })
    const dry = await place.ok('flow', 'redrive', id, ...WHY, '--dry-run')
    expect(dry).toBe('redrive: 1 matched, 1 done (dry run, nothing was written)\n')
    repair()
    expect(await place.ok('flow', 'redrive', id, ...WHY)).toBe('redrive: 1 matched, 1 done\n')
    await workUntil(pawl, id, { succeeded: 4, parked: 0 })
    const facts = await pawl.store.facts(ids[2] ?? '')
    expect(facts.find(({ trigger }) => trigger === 'redrive')).toMatchObject({
      operator: 'ada',
      note: 'INC-7',
    })
    const created = (await pawl.store.flows.get(id))?.createdAt ?? 0
    const past = await place.json<Line>('flow', 'show', id, '--at', new Date(created).toISOString())
    expect(past.slice(1).every(({ status }) => status === 'ready' || status === 'waits')).toBe(true)
    expect(await place.ok('flow', 'show', id)).toMatch(/\n {2}progress {3}4 of 4 succeeded\n/)
  })

  it('folds large batches, and shows their progress and callbacks', async () => {
    const place = await open()
    const { jobs, render, report } = reporting()
    await using pawl = await createPawl({ store: place.store, jobs })
    const members = Array.from({ length: 60 }, () => ({ job: render }))
    const callback = { job: report, after: [group('members', 'members')] }
    const options = { kind: 'batch', open: true } as const
    const { id, jobs: ids } = await makeFlow(pawl, [callback, ...members], options)
    const shown = await place.ok('batch', 'show', id)
    expect(shown).toBe(
      `batch ${id}  open, open\n  0 of 60 succeeded, 60 live\n` +
        `  callback report ${ids[0]} ${(await pawl.store.get(ids[0] ?? ''))?.state}\n`,
    )
    const folded = await place.run(['flow', 'show', id])
    expect(folded.stdout).toMatch(/\t1-60\trender ×60\t60 ready\t-\t/)
    expect(folded.stdout).toMatch(/\t0\treport\twaits\tmembers 1-60 0 of 60\t/)
    expect(folded.stderr).toContain('--all lists every node')
    expect((await place.ok('flow', 'show', id, '--all')).split('\trender\t')).toHaveLength(61)
    const [counts] = await place.json<{ progress: object }>('batch', 'show', id)
    expect(counts?.progress).toMatchObject({ members: 60, live: 60 })
    expect(await place.ok('flow', 'cancel', id, ...WHY)).toBe('cancel: 61 matched, 61 done\n')
    expect(await pawl.store.flows.get(id)).toMatchObject({ state: 'done', open: false })
  })

  it('is refused with the exit code of the error', async () => {
    const place = await open()
    const { jobs, nodes } = reporting()
    await using pawl = await createPawl({ store: place.store, jobs })
    const { id } = await makeFlow(pawl, nodes)
    const refused: [string[], number, RegExp][] = [
      [['flow', 'show', NOBODY], 4, /E_FLOW_NOT_FOUND/],
      [['flow', 'show', 'nonsense'], 4, /E_FLOW_NOT_FOUND/],
      [['flow', 'cancel', NOBODY, ...WHY], 4, /E_FLOW_NOT_FOUND/],
      [['flow', 'redrive', NOBODY, ...WHY], 4, /E_FLOW_NOT_FOUND/],
      [['flow', 'cancel', id], 2, /A reason is required/],
      [['flow', 'show', id, '--at', 'soon'], 2, /--at must be a date/],
      [['flow', 'show', id, '--mermaid', '--json'], 2, /cannot be used together/],
      [['flow', 'list', '--state', 'closed'], 2, /Allowed choices are open, attention, done/],
      [['batch', 'show', id], 4, /E_FLOW_NOT_FOUND/],
    ]
    for (const [args, code, why] of refused) {
      const answer = await place.run(args)
      expect([args, answer.code, answer.stdout]).toEqual([args, code, ''])
      expect(answer.stderr).toMatch(why)
    }
  })
})
