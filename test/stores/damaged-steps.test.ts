// What belongs to a job can be damaged as well: the result of a step, or the job that an effect
// refers to. Nothing is repeated or delivered under a wrong key; the doctor says what to do.
import { LIFECYCLES } from 'pawl/rules'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Doctor } from '../../src/doctor/doctor.ts'
import { createPawl } from '../../src/engine/create-pawl.ts'
import { defineJob } from '../../src/engine/define-job.ts'
import type { Pawl } from '../../src/engine/pawl.ts'
import { systemEnvironment } from '../../src/environment/system.ts'
import { type Clinic, type Kind, openClinic } from '../doctor/clinic.ts'
import { freshServerDatabase } from '../support/postgres/databases.ts'
import { type Examined, enqueue, STORES } from './examined-stores.ts'

const REQUEST = { worker: 'w1', limit: 10, leaseMs: 60_000, start: true }

async function clinicOf(kind: Kind): Promise<Clinic> {
  const database = kind === 'sqlite' ? undefined : await freshServerDatabase()
  const clinic = await openClinic(kind, database?.url ?? '')
  onTestFinished(async () => {
    await clinic.close()
    await database?.drop()
  })
  return clinic
}

const DAMAGES = ["data = '{}'", "payload = 'oops'"]
const KINDS: Kind[] = ['sqlite', 'postgres']

describe.each(KINDS)('the result of a step on %s', (kind) => {
  it.each(DAMAGES)(
    'that was damaged (%s) sets its job aside, and nothing runs again',
    async (set) => {
      const clinic = await clinicOf(kind)
      let goOn = () => {}
      const damaged = new Promise<void>((resolve) => {
        goOn = resolve
      })
      const calls: string[] = []
      const caught: unknown[] = []
      const broken = defineJob({
        name: 'broken',
        retry: { max: 5, delay: '1ms' },
        run: async ({ step, attempt }) => {
          calls.push(`run ${attempt}`)
          try {
            await step('pay', () => calls.push('pay'))
          } catch (error) {
            caught.push(error)
            throw error
          }
          if (attempt === 1) await damaged
          throw new Error('try again')
        },
      })
      const other = defineJob({ name: 'other', run: () => 'done' })
      const pawl = await createPawl({ store: clinic.store, jobs: [broken, other] })
      onTestFinished(() => pawl.close())
      const { id } = await pawl.enqueue(broken, null)
      await work(pawl)
      await until(
        async () => (await clinic.rows('SELECT 1 FROM @ledger WHERE kind = 22')).length > 0,
      )
      const [trigger] =
        kind === 'sqlite'
          ? ['DROP TRIGGER @ledger_is_never_updated']
          : ['DROP TRIGGER ledger_is_never_updated ON @ledger']
      await clinic.damage(trigger as string)
      await clinic.damage(`UPDATE @ledger SET ${set} WHERE kind = 22`)
      goOn()
      await until(async () => (await clinic.store.counts()).lanes.parked === 1)
      await (await pawl.enqueue(other, null)).result({ timeout: 10_000 })
      expect(calls).toEqual(['run 1', 'pay', 'run 2'])
      expect(caught).toMatchObject([{ code: 'E_JOB_DAMAGED' }])
      expect(
        await clinic.rows(`SELECT failures, blocked_reason FROM @jobs WHERE id = '${id}'`),
      ).toMatchObject([{ failures: 1, blocked_reason: 'damaged' }])
      const environment = systemEnvironment()
      const doctor = new Doctor({ store: clinic.store, lifecycles: LIFECYCLES, environment })
      await doctor.repair({ operator: 'ann', reason: 'damaged by hand' })
      const errors = (await doctor.check({ full: true })).findings.filter(
        ({ severity }) => severity === 'error',
      )
      expect(errors).toEqual([])
    },
  )
})

describe.each(KINDS)('a deadline on %s', (kind) => {
  const play = async (deadline: Date | undefined, goesOn = true) => {
    const clinic = await clinicOf(kind)
    let goOn = () => {}
    const compared = new Promise<string>((resolve) => {
      goOn = () => resolve('done')
    })
    const slow = defineJob({
      name: 'slow',
      run: ({ signal }) =>
        new Promise((resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error))
          void compared.then(resolve)
        }),
    })
    const ignore = () => {}
    const warn = ({ event }: { readonly event?: unknown }) => {
      if (event === 'job.deadline_damaged' && goesOn) goOn()
    }
    const logger = { debug: ignore, info: ignore, warn, error: ignore }
    const pawl = await createPawl({ store: clinic.store, jobs: [slow], logger })
    onTestFinished(() => pawl.close())
    const handle = await pawl.enqueue(slow, null, { ...(deadline && { deadline }) })
    await clinic.damage(`UPDATE @jobs SET deadline_at = 1 WHERE id = '${handle.id}'`)
    await work(pawl)
    const outcome = await handle.result({ timeout: 20_000 }).catch((error: unknown) => error)
    const { findings } = await clinic.doctor.check({ full: true })
    return { outcome, findings: findings.filter(({ severity }) => severity !== 'notice') }
  }
  const found = [{ check: 'row-is-fold', what: 'row and facts differ in deadline_at' }]

  it('that no fact has ends no job, and the doctor reports it', async () => {
    const { outcome, findings } = await play(undefined)
    expect(outcome).toMatchObject({ kind: 'succeeded' })
    expect(findings).toMatchObject(found)
  })

  it('that is earlier than that of the facts gives way to it', async () => {
    const { outcome, findings } = await play(new Date(Date.now() + 3_600_000))
    expect(outcome).toMatchObject({ kind: 'succeeded' })
    expect(findings).toMatchObject(found)
  })

  it('of the facts that has passed as well ends the job', async () => {
    const { outcome } = await play(new Date(Date.now() - 1000), false)
    expect(outcome).toMatchObject({ kind: 'failed', error: { kind: 'deadline' } })
  })
})

async function work(pawl: Pawl): Promise<void> {
  await pawl.work({ id: 'w1', poll: '20ms', recover: '100ms', checkup: '1h' })
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((turn) => setImmediate(turn))
}

describe.each(STORES)('an effect on $name', ({ open }) => {
  const commit = async (examined: Examined) => {
    const id = await enqueue(examined, 'a')
    const [held] = await examined.store.claim(REQUEST)
    if (held === undefined) throw new Error('nothing was claimed')
    await examined.store.commit(held, (tx) => {
      tx.effect('mail', '{}')
      return '"sent"'
    })
    return id
  }
  const MISSING = '00000000-0000-7000-8000-00000000dead'

  it.each(['job', 'type'])(
    'whose %s is damaged is parked, and its neighbours go on',
    async (field) => {
      const examined = await open()
      const { store, sql, refColumn } = examined
      const hurt = await commit(examined)
      const sound = await commit(examined)
      const missing = refColumn === 'rid' ? '999' : `'${MISSING}'`
      const owner =
        refColumn === 'rid' ? `(SELECT rid FROM @jobs WHERE id = '${hurt}')` : `'${hurt}'`
      const value = field === 'job' ? missing : `'other'`
      await sql(`UPDATE @outbox SET ${field} = ${value} WHERE job = ${owner}`)
      const claimed = await store.claimEffects({ limit: 10, leaseMs: 60_000 })
      expect(claimed.map(({ key }) => key)).toEqual([`${sound}/mail/1`])
      expect(await sql(`SELECT error FROM @outbox WHERE state = 'parked'`)).toEqual([
        { error: 'its job is missing, or is of another type' },
      ])
      const doctor = new Doctor({
        store,
        environment: examined.environment,
        lifecycles: LIFECYCLES,
      })
      const { findings } = await doctor.check({ full: true })
      expect(findings.length).toBeGreaterThan(0)
    },
  )
})
