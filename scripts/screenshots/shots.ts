/** The pages of which pictures are made. A new page gets a line here. */
import type { TestPawl } from 'pawl/testing'
import type { Page } from 'playwright-core'

export interface Shot {
  readonly name: string
  readonly path: string
  readonly prepare?: (page: Page) => Promise<void>
}

const RUNS: readonly Shot[] = [
  { name: 'runs', path: '/runs' },
  { name: 'run', path: '/runs/handbook-2' },
  { name: 'run-past', path: '/runs/handbook-1?at=88&tab=changes' },
  { name: 'run-artifacts', path: '/runs/handbook-2?tab=artifacts&artifact=facts' },
  { name: 'run-graph', path: '/runs/handbook-2?tab=graph&artifact=site%2Fwinches.md' },
  { name: 'run-resume', path: '/runs/handbook-3?tab=resume' },
]

/** The pages of flows. */
async function flowShots({ flows }: TestPawl['store']): Promise<Shot[]> {
  const path = async (key: string) => `/flows/${(await flows.getByKey(key))?.id}`
  const done = await flows.getByKey('statements 2026-10')
  const held = await flows.getByKey('statements 2026-11')
  const waiting = held && (await flows.nodes(held.id, { limit: 10 })).items.at(-1)
  return [
    { name: 'flows', path: '/flows' },
    { name: 'flow', path: await path('statements 2026-11') },
    { name: 'flow-done', path: await path('statements 2026-10') },
    {
      name: 'flow-past',
      path: `${await path('statements 2026-10')}?at=${(done?.createdAt ?? 0) + 3000}`,
    },
    { name: 'flow-batch', path: await path('archive of 2025') },
    { name: 'flow-job', path: `/jobs/${waiting?.job.id}` },
    { name: 'flows-empty', path: '/flows?key=nothing' },
  ]
}

const INBOX: readonly Shot[] = [
  { name: 'inbox', path: '/inbox' },
  {
    name: 'inbox-answer',
    path: '/inbox',
    prepare: async (page) => {
      await page.getByRole('button', { name: 'Answer…' }).first().click()
      await page.getByLabel('Reason').waitFor()
    },
  },
]

export async function shotsOf({ store }: TestPawl): Promise<Shot[]> {
  const parked = (await store.list({ lane: 'parked' }, { limit: 10 })).items
  const succeeded = (await store.list({ state: 'succeeded', type: 'charge' }, { limit: 1 })).items
  const poisoned = parked.find(({ error }) => error !== null) ?? parked[0]
  const crashed = parked.find(({ crashes }) => crashes > 0) ?? poisoned
  const job = (id: string | undefined, query = '') => `/jobs/${id}${query}`
  return [
    { name: 'overview', path: '/' },
    { name: 'jobs', path: '/jobs' },
    { name: 'jobs-parked', path: '/jobs?lane=parked' },
    { name: 'jobs-empty', path: '/jobs?type=nothing' },
    { name: 'job', path: job(crashed?.id, '?at=6') },
    { name: 'job-errors', path: job(poisoned?.id, '?tab=errors') },
    { name: 'job-succeeded', path: job(succeeded[0]?.id, '?tab=input') },
    ...INBOX,
    { name: 'effects', path: '/effects?state=delivered' },
    { name: 'queues', path: '/queues' },
    { name: 'queue', path: '/queues/reports' },
    { name: 'limits', path: '/limits' },
    {
      name: 'limit',
      path: '/limits/tenant',
      prepare: async (page) => {
        await page.getByRole('button', { name: 'Compute from the ledger' }).click()
        await page.getByText('at most').waitFor()
      },
    },
    {
      name: 'limit-dialog',
      path: '/limits/tenant?key=acme',
      prepare: async (page) => {
        await page.getByRole('button', { name: 'Set…' }).click()
        await page.getByText('run now').waitFor()
      },
    },
    { name: 'schedules', path: '/schedules' },
    { name: 'schedule', path: '/schedules/sales-report' },
    { name: 'workers', path: '/workers' },
    ...RUNS,
    ...(await flowShots(store)),
    { name: 'audit', path: '/audit' },
    { name: 'machines', path: '/machines?edges=main' },
    { name: 'machines-worker', path: '/machines?machine=worker' },
    {
      name: 'doctor',
      path: '/doctor',
      prepare: async (page) => {
        await page.getByRole('button', { name: 'Check everything' }).click()
        await page.getByText('jobs checked').waitFor()
      },
    },
    {
      name: 'dialog',
      path: job(crashed?.id),
      prepare: async (page) => {
        await page.getByRole('button', { name: 'Redrive…' }).click()
        await page.waitForTimeout(300)
      },
    },
    {
      name: 'palette',
      path: '/jobs',
      prepare: async (page) => {
        await page.keyboard.press('/')
        await page.waitForTimeout(200)
      },
    },
  ]
}
