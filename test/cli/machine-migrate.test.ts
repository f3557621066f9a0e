// Versions of lifecycles from the command line: listed, shown, and migrated by an operator.
import { createPawl, defineJob } from 'pawl'
import { describe, expect, it } from 'vitest'
import { parcel1, parcel2 } from '../contract/store/parcels.ts'
import { Place } from './pawl.ts'

/** A place whose store has jobs of version 1, and was opened by a release with version 2. */
async function placeWithTwoVersions(jobs: number): Promise<Place> {
  const place = new Place()
  const store = `sqlite:${place.path}`
  const carry = defineJob({ name: 'carry', lifecycle: parcel1 })
  await using old = await createPawl({ store, jobs: [carry] })
  for (let i = 0; i < jobs; i++) await old.enqueue(carry, {})
  await using _next = await createPawl({ store, lifecycles: [parcel2] })
  return place
}

const MIGRATE = ['machine', 'migrate', 'parcel', '--to', '2', '--reason', 'release 12'] as const

describe('pawl machine', () => {
  it('migrates jobs without a file of jobs, and says first what it would do', async () => {
    const place = await placeWithTwoVersions(3)
    expect(await place.ok(...MIGRATE, '--dry-run')).toBe(
      'migrate: 3 matched, 3 done (dry run, nothing was written)\n  v1 packed → v2 ready: 3\n',
    )
    const [report] = await place.json<{ done: number }>(...MIGRATE, '--yes')
    expect(report).toMatchObject({ verb: 'migrate', dryRun: false, matched: 3, done: 3 })
    expect(await place.ok(...MIGRATE)).toBe('migrate: 0 matched\n')
    const facts = await place.json<{ fact: { operator: string; note: string } }>(
      ...['audit', 'list', '--trigger', 'migrate'],
    )
    expect(facts).toHaveLength(3)
  })

  it('asks before it migrates, and refuses what it cannot do', async () => {
    const place = await placeWithTwoVersions(1)
    expect((await place.run([...MIGRATE])).code).toBe(2)
    const noReason = await place.run(['machine', 'migrate', 'parcel', '--to', '2'])
    expect(noReason.code).toBe(2)
    const unknown = ['machine', 'migrate', 'parcel', '--to', '9', '--reason', 'x']
    const refused = await place.run(unknown)
    expect([refused.code, refused.stderr]).toEqual([5, expect.stringContaining('version 9')])
  })

  it('shows every version that the store has', async () => {
    const place = await placeWithTwoVersions(1)
    const listed = await place.json<{ name: string; version: number }>(
      ...['machine', 'list', '--stored'],
    )
    const versions = listed.filter(({ name }) => name === 'parcel').map(({ version }) => version)
    expect(versions).toEqual([1, 2])
    const one = await place.ok('machine', 'show', 'parcel', '--machine-version', '1', '--stored')
    expect(one).toContain('packed → underway')
    expect(
      (await place.run(['machine', 'show', 'parcel', '--machine-version', '3', '--stored'])).code,
    ).toBe(4)
  })
})
