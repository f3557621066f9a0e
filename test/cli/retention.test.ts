// Retention from the command line: what is old, and removing it under a name and with a reason.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { rowsOf } from '../processes/inspect.ts'
import { Place } from './pawl.ts'

const WHY = ['--reason', 'INC-7: the disk is full']

/** A store with cancelled jobs that ended 40 days ago. */
async function filled(): Promise<Place> {
  const place = new Place()
  for (const key of ['a', 'b', 'c']) {
    await place.ok('job', 'enqueue', 'send', '1', '--key', key)
  }
  await place.ok('job', 'cancel', '--all', '--yes', ...WHY)
  rowsOf(place.path, 'UPDATE pawl_jobs SET ended_at = ended_at - 3456000000')
  return place
}

describe('pawl retention', () => {
  it('counts, shows and removes old jobs, and keeps their keys', async () => {
    const place = await filled()
    expect(await place.ok('retention', 'status')).toMatch(
      /^No worker looks after retention\.\n3 jobs ended more than 30 days ago\n0 keys/,
    )
    const asked = ['--cancelled', '30d', '--keys', '1y']
    expect(await place.ok('retention', 'status', ...asked)).toMatch(
      /3 cancelled jobs are older than 30d/,
    )
    const [dry] = await place.json('retention', 'run', ...asked, '--dry-run', ...WHY)
    expect(dry).toMatchObject({ removed: 3, keys: 3, dryRun: true })
    const unsure = await place.run(['retention', 'run', ...asked, ...WHY])
    expect(unsure.code).not.toBe(0)
    expect(await place.json('job', 'list')).toHaveLength(3)
    const folder = join(place.folder, 'archive')
    const done = await place.ok(
      ...['retention', 'run', ...asked, '--archive', folder, '--yes', ...WHY],
    )
    expect(done).toMatch(/^3 jobs removed, 3 keys kept\n/)
    expect(await place.json('job', 'list')).toEqual([])
    expect(await readdir(folder)).toHaveLength(1)
    expect(await place.ok('retention', 'status')).toMatch(/3 keys of removed jobs are kept/)
    const again = await place.run(['job', 'enqueue', 'send', '1', '--key', 'a'])
    expect(again.stdout + again.stderr).toMatch(/removed/)
  })

  it.each([
    [['run', '--succeeded', '7d'], /A reason is required/],
    [['run', ...WHY], /No time is given/],
    [['run', '--type', 'send', ...WHY], /No time is given/],
    [['run', '--succeeded', 'soon', ...WHY], /retention\.succeeded/],
    [['status', '--failed', '0s'], /retention\.failed/],
  ])('%j is wrong usage', async (args, why) => {
    const place = new Place()
    await place.ok('db', 'migrate')
    const { code, stderr } = await place.run(['retention', ...args])
    expect(stderr).toMatch(why)
    expect(code).toBe(2)
  })
})
