// A check that cannot be made is a finding (R0): nobody may take it for passed.
import { LIFECYCLES } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { Doctor, findingsOf } from '../../src/doctor/doctor.ts'
import { examine } from '../../src/doctor/examined-job.ts'
import type { Examination } from '../../src/stores/contract/examination.ts'
import type { Store } from '../../src/stores/contract/store.ts'
import { wrapStore } from '../../src/stores/wrap-store.ts'
import { claim, enqueue, STORES, storedJobOf } from '../stores/examined-stores.ts'

/** A store of which the doctor cannot have something. */
function without(store: Store, verb: keyof Examination): Store {
  const fail = () => Promise.reject(new Error('it cannot be read'))
  const examination = new Proxy(store.examination, {
    get: (target, name) => {
      if (name === verb) return fail
      const value = Reflect.get(target, name, target) as (...values: unknown[]) => unknown
      return value.bind(target)
    },
  })
  return wrapStore(store, { examination })
}

describe.each(STORES)('on $name, a check that throws', ({ open }) => {
  it.each([
    ['counters', 'counters-are-right', 'P9'],
    ['storage', 'storage-is-sound', 'P1'],
    ['drift', 'schema-is-as-declared', 'P16'],
    ['storedJobs', 'jobs-can-be-read', 'P1'],
  ] as const)('is a finding, and the others are made: %s', async (verb, check, promise) => {
    const examined = await open()
    const { environment } = examined
    const id = await enqueue(examined, 'a')
    await examined.sql(`UPDATE @jobs SET priority = 7, run_at = 5 WHERE id = '${id}'`)
    const store = without(examined.store, verb)
    const doctor = new Doctor({ store, lifecycles: LIFECYCLES, environment })
    const report = await doctor.check({ full: true })
    expect(report).toMatchObject({ ok: false, complete: verb !== 'storedJobs' })
    expect(report.findings).toContainEqual({
      ...{ check, promise, severity: 'error', subject: 'the store', evidence: {} },
      what: `the check ${check} failed: it cannot be read`,
    })
    const others = report.findings.map((finding) => finding.check)
    expect(others).toContain('queues-are-served')
    if (verb !== 'storedJobs') expect(others).toContain('row-is-fold')
  })

  it('over one job is a finding of that job, and the others are made', async () => {
    const examined = await open()
    const { job } = await claim(examined, 'a')
    await examined.sql(`UPDATE @jobs SET priority = 7 WHERE id = '${job.id}'`)
    const subject = examine(await storedJobOf(examined, job.id), LIFECYCLES)
    const workers = {
      get: () => {
        throw new Error('no such worker')
      },
    } as unknown as ReadonlyMap<string, never>
    const thresholds = { workerMs: 1, dueMs: 1, stalledMs: 1 }
    const none = { duplicateIds: new Set(), keyless: new Set(), redundant: new Set() }
    const around = { now: examined.store.now(), ...none }
    const context = { ...around, workers, thresholds } as Parameters<typeof findingsOf>[1]
    const findings = findingsOf(subject, context, undefined)
    expect(findings.map(({ check, subject, severity }) => [check, subject, severity])).toEqual([
      ['held-jobs-have-leases', `job ${job.id}`, 'error'],
      ['row-is-fold', `job ${job.id}`, 'error'],
      ['stalled-jobs', `job ${job.id}`, 'error'],
    ])
  })
})
