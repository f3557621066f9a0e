/**
 * A store with a few hours of a shop's life, for pictures of the dashboard. Everything is made by
 * the engine itself, in virtual time: workers claim, fail, crash and commit as in production.
 */
import { defineJob, defineLimit, defineSchedule, Retryable, sql, typed } from 'pawl'
import { createTestPawl, type TestPawl } from 'pawl/testing'
import { ASKING } from './asking.ts'
import { flowTypes, makeFlows } from './flows.ts'

type Pass = (ms: number) => void

const ORDERS = 240
const MINUTE = 60_000

interface Weather {
  bankIsDown: boolean
  readonly poisoned: ReadonlySet<string>
  /** Handlers of the job type sync wait for it; undefined while they need not. */
  hold: Promise<void> | undefined
}

/** The store, and its workers. */
export interface Demo {
  readonly test: TestPawl
  /** Starts workers, which stay. The time must not be advanced after that. */
  work(): Promise<void>
  close(): Promise<void>
}

/** Takes money from a bank that is down at times, and for some orders always. */
function chargeType(pass: Pass, state: Weather) {
  return defineJob({
    name: 'charge',
    queue: 'billing',
    input: typed<{ order: string; cents: number; card: { last4: string; token: string } }>(),
    retry: { max: 4, delay: '5s', backoff: 'exponential' },
    run: async ({ input, step, commit }) => {
      pass(40)
      const id = await step('authorise', async () => {
        pass(180)
        if (state.poisoned.has(input.order)) {
          const cause = Object.assign(new Error('connect ECONNREFUSED 10.0.7.12:443'), {
            ...{ code: 'ECONNREFUSED', syscall: 'connect', address: '10.0.7.12', port: 443 },
          })
          throw new Retryable('The bank does not answer', 'unavailable', { cause })
        }
        if (state.bankIsDown) throw new Retryable('The bank does not answer', 'unavailable')
        return { authorisation: `auth_${input.order}`, cents: input.cents }
      })
      pass(35)
      return commit(async (tx) => {
        await tx.query(sql`INSERT INTO payments (id) VALUES (${input.order})
          ON CONFLICT DO NOTHING`)
        tx.effect('receipt', { to: `${input.order}@example.org`, order: input.order })
        return { charge: id.authorisation, cents: input.cents }
      })
    },
    effects: {
      receipt: async () => {
        pass(12)
      },
    },
  })
}

/** Job types whose attempts take some of the virtual time. */
function jobTypes(pass: Pass, state: Weather) {
  const charge = chargeType(pass, state)
  const mail = defineJob({
    name: 'send-mail',
    queue: 'mail',
    input: typed<{ to: string; template: string }>(),
    run: () => {
      pass(25)
      return { accepted: true }
    },
  })
  const report = defineJob({
    name: 'report',
    queue: 'reports',
    input: typed<{ region: string }>(),
    run: () => {
      pass(4200)
      return { rows: 48_210 }
    },
  })
  const tenants = defineLimit({ name: 'tenant', concurrency: 1, keyed: true })
  const sync = defineJob({
    name: 'sync',
    queue: 'import',
    input: typed<{ tenant: string; page: number }>(),
    concurrency: [{ limit: tenants, key: (input) => input.tenant }],
    run: async () => {
      pass(800)
      await state.hold
    },
  })
  const long = defineJob({
    name: 'rebuild-search-index-for-marketplace-listings-with-translations',
    queue: 'import',
    input: typed<{ note: string }>(),
    run: () => {
      pass(90)
      throw new Error('فشل الاتصال بالخادم: upstream 10.0.3.9 closed the connection early')
    },
    retry: { max: 1, delay: '10s' },
  })
  return { charge, mail, report, sync, long }
}

/** Makes the store. The caller closes it. */
export async function makeDemo(now: number): Promise<Demo> {
  const clock = { pass: (_ms: number) => {} }
  const poisoned = new Set(['o-17', 'o-58'])
  const state: Weather = { bankIsDown: false, poisoned, hold: undefined }
  const types = jobTypes((ms) => clock.pass(ms), state)
  const { charge, mail, report, sync, long } = types
  let isBroken = false
  const ofFlows = flowTypes(
    (ms) => clock.pass(ms),
    () => isBroken,
  )
  const test = await createTestPawl({
    jobs: [charge, mail, report, sync, long, ...Object.values({ ...ofFlows, ...ASKING })],
    schedules: schedulesOf(types),
    start: now - (3 + QUIET_HOURS) * 60 * MINUTE,
    queues: { import: { concurrency: 100 } },
  })
  clock.pass = (ms) => test.environment.clock.advance(ms)
  await test.query('CREATE TABLE payments (id TEXT PRIMARY KEY)')
  const { pawl } = test
  await quietDays(test)
  for (let order = 1; order <= ORDERS; order++) {
    const id = `o-${order}`
    const card = { last4: String(1000 + order * 7).slice(-4), token: 'tok_live_51H' }
    const tags = order % 9 === 0 ? ['vip', 'eu'] : ['eu']
    await pawl.enqueue(charge, { order: id, cents: 1000 + order * 37, card }, { tags })
    await pawl.enqueue(mail, { to: `${id}@example.org`, template: 'order-received' })
    if (order % 60 === 0) await pawl.enqueue(long, { note: 'wöchentlich – 每周 – أسبوعي' })
    state.bankIsDown = order > 90 && order < 98
    await test.drain()
    await test.advance(40_000)
  }
  await test.fastForward()
  await askForAnswers(test)
  await crashes(test, charge)
  await makeFlows(test, ofFlows, (value) => {
    isBroken = value
  })
  await waitingJobs(test, types)
  let release = async () => {}
  return {
    test,
    work: async () => {
      release = await workersOf(test, state)
    },
    close: async () => {
      await release()
      await test.close()
    },
  }
}

type Types = ReturnType<typeof jobTypes>

/** Jobs for the inbox: one waits for an approval, one for a signal with a form. */
async function askForAnswers(test: TestPawl): Promise<void> {
  const { refund, address } = ASKING
  for (const [order, cents] of [
    ['o-12', 4800],
    ['o-77', 129_900],
    ['o-103', 2500],
  ] as const) {
    await test.pawl.enqueue(refund, { order, cents }, { key: `refund ${order}` })
    await test.advance('7m')
  }
  await test.pawl.enqueue(address, { order: 'o-81', name: 'مريم العلي' })
  await test.drain()
  await test.advance('3m')
}

function schedulesOf({ report, mail, sync }: Types) {
  const zone = { timezone: 'Europe/Berlin' } as const
  return [
    defineSchedule({
      ...{ name: 'sales-report', job: report, input: { region: 'eu' }, ...zone },
      cron: '0 * * * *',
    }),
    defineSchedule({
      ...{ name: 'nightly-digest', job: mail, input: { to: 'all', template: 'digest' } },
      ...{ cron: '30 2 * * *', ...zone },
    }),
    defineSchedule({
      ...{ name: 'partner-sync', job: sync, input: { tenant: 'initech', page: 0 } },
      every: '1h',
    }),
  ]
}

const QUIET_HOURS = 48

/** Two days before the orders: operators pause and resume, so that ticks are skipped and missed. */
async function quietDays(test: TestPawl): Promise<void> {
  const by = (reason: string) => test.pawl.operator({ name: 'ann', reason })
  for (let hour = 0; hour < QUIET_HOURS; hour++) {
    if (hour === 36) await by('INC-12: the warehouse is slow').pauseQueue('reports')
    if (hour === 39) await by('INC-12 is over').resumeQueue('reports')
    if (hour === 35) await by('INC-14: their API is down').pauseSchedule('partner-sync')
    if (hour === 40) await by('INC-14 is over').resumeSchedule('partner-sync')
    await test.advance('1h')
    await test.drain()
  }
}

/** Live workers: two hold jobs of tenants, whose other jobs are blocked. */
async function workersOf(test: TestPawl, state: Weather): Promise<() => Promise<void>> {
  let release = () => {}
  state.hold = new Promise((resolve) => {
    release = () => resolve()
  })
  const { pawl } = test
  const workers = [
    await pawl.work({ id: 'import-1-20144', queues: ['import'], concurrency: 8 }),
    await pawl.work({ id: 'import-2-20147', queues: ['import'], concurrency: 8 }),
    await pawl.work({ id: 'web-1-4711', queues: ['billing', 'mail'], concurrency: 16 }),
  ]
  await test.until(async () => (await test.store.counts()).lanes.blocked > 0)
  await test.advance('4m')
  await pawl.operator({ name: 'ann', reason: 'INC-15: the relay bounces' }).pauseQueue('mail')
  return async () => {
    release()
    await test.finish(Promise.all(workers.map((worker) => worker.stop())))
  }
}

/** A job that kills its worker until it is parked. */
async function crashes(test: TestPawl, charge: Types['charge']): Promise<void> {
  const card = { last4: '4242', token: 'tok_live_9' }
  await test.pawl.enqueue(charge, { order: 'o-crash', cents: 9900, card }, { tags: ['eu'] })
  for (let i = 0; i < 6; i++) {
    test.crashAt('commit.written')
    await test.drain().catch(() => undefined)
    await test.advance('2m')
  }
}

/** What is going on now: jobs that are ready, blocked, scheduled, retrying and held back. */
async function waitingJobs(test: TestPawl, types: Types): Promise<void> {
  const { pawl } = test
  const { charge, mail, sync, report } = types
  const card = { last4: '0007', token: 'tok_live_7' }
  for (let page = 1; page <= 24; page++) {
    await pawl.enqueue(sync, { tenant: page % 4 === 0 ? 'globex' : 'acme', page })
  }
  for (let i = 0; i < 12; i++) {
    await pawl.enqueue(
      mail,
      { to: `news-${i}@example.org`, template: 'newsletter' },
      { delay: '2h' },
    )
  }
  for (let i = 0; i < 5; i++) await pawl.enqueue(report, { region: `r${i}` })
  const held = { hold: true } as const
  await pawl.enqueue(charge, { order: 'o-late', cents: 12_345_678_901, card }, held)
}
