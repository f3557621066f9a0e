// The row of a lifecycle can be damaged like any other. Whatever its number, name, version, held
// state or definition become: jobs of other lifecycles go on, in processes that run already and in
// those that open the store afterwards; the doctor restores it, and then all jobs go on.
import { hardened, LIFECYCLES, standard } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import type { PawlError } from '../../src/core/errors.ts'
import type { Lifecycle } from '../../src/core/lifecycles/lifecycle.ts'
import { Doctor } from '../../src/doctor/doctor.ts'
import type { Store } from '../../src/stores/contract/store.ts'
import { type Examined, STORES } from './examined-stores.ts'

const REQUEST = { worker: 'w1', limit: 10, leaseMs: 60_000, start: true }

async function enqueue({ environment }: Examined, store: Store, lifecycle: Lifecycle) {
  const jobId = environment.ids.next()
  const command = { jobId, type: 'mail', queue: lifecycle.name }
  const [answer] = await store.enqueue([{ lifecycle, command, input: '{}' }])
  if (answer?.kind === 'rejected') throw answer.error
  return jobId
}

const DAMAGES = [
  ...['id = 99', 'id = -1', 'id = 2147483647', 'id = 9007199254740993'],
  ...["name = 'oops'", "name = ''", 'version = 7', 'version = -1', 'version = 9007199254740993'],
  ...["held = 'oops'", "definition = 'oops'", "definition = '{}'", "definition = 'null'"],
  `definition = '{"states":{},"edges":[]}'`,
  "definition = (SELECT definition FROM @machines AS other WHERE other.name = 'hardened')",
  "mark = 'oops'",
]

describe.each(STORES)('the row of a lifecycle on $name', ({ open }) => {
  it.each(DAMAGES)('with %s stops no other lifecycle, and the doctor restores it', async (set) => {
    const examined = await open()
    const { store, sql, environment } = examined
    const before = await enqueue(examined, store, standard)
    if (examined.refColumn === 'rid') await sql('PRAGMA foreign_keys = OFF')
    try {
      await sql(`UPDATE @machines SET ${set} WHERE name = 'standard'`)
    } catch {
      return // The type of the column refuses it.
    }
    const other = await examined.again()
    const ids = [before]
    for (const one of [store, other]) {
      ids.push(await enqueue(examined, one, hardened))
      expect(await one.claim({ ...REQUEST, queues: ['hardened'] })).toHaveLength(1)
      expect((await one.list({})).items.length).toBeGreaterThan(0)
      const answer = await enqueue(examined, one, standard).catch((error: unknown) => error)
      if (typeof answer === 'string') ids.push(answer)
      else
        expect(answer).toMatchObject({ code: 'E_MACHINE_DAMAGED', details: { name: 'standard' } })
      expect(await one.get(before).catch((error: PawlError) => error.details)).toBeDefined()
    }
    const doctor = new Doctor({ store: other, environment, lifecycles: LIFECYCLES })
    expect((await doctor.check({ full: true })).errors).toBeGreaterThan(0)
    await doctor.repair({ operator: 'ann', reason: 'damaged by hand' })
    const { findings } = await doctor.check({ full: true })
    expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
    ids.push(await enqueue(examined, other, standard))
    const claimed = await other.claim({ ...REQUEST, queues: ['standard'] })
    expect(claimed).toHaveLength(ids.length - 2)
  })
})
