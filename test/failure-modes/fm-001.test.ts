// FM_001, the duplicate retry of document 001: two attempts at one job both want to commit.
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { checkFacts, checkP9, executionsOf, leased } from 'pawl'
import { describe, expect, it } from 'vitest'
import { type Fm001Place, playFm001, runFm001, sqlitePlace } from '../../src/demos/fm-001.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import { freshFolder } from '../processes/folder.ts'
import { connected } from '../support/postgres/clients.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres/databases.ts'

/** What the ledger says of both attempts, whether somebody then went round the fence or not. */
const ATTEMPTS = [
  { attempt: 1, leaseOwner: 'worker-a', status: 'ABORTED', abort: 'lease_expired' },
  { attempt: 2, leaseOwner: 'worker-b', status: 'DONE', abort: null },
]

const PLAYS = [
  { name: 'a SQLite file', place: filePlace, fence: 'off', effects: 2 },
  { name: 'a SQLite file', place: filePlace, fence: 'on', effects: 1 },
  { name: 'PostgreSQL', place: postgresPlace, fence: 'off', effects: 2 },
  { name: 'PostgreSQL', place: postgresPlace, fence: 'on', effects: 1 },
] as const

describe('the duplicate retry', () => {
  it('has two effects without a fence, and one with it, counted in the database', async () => {
    const { fenceOff, fenceOn, steps } = await runFm001()
    expect({ fenceOff, fenceOn }).toEqual({ fenceOff: { effects: 2 }, fenceOn: { effects: 1 } })
    const late = steps.filter((step) => step.includes('worker-a commits'))
    expect(late.map((step) => step.trim())).toEqual([
      'worker-a commits its effect: accepted',
      'worker-a commits its effect: refused, E_STALE_FENCE',
    ])
    expect(steps.filter((step) => step.includes('the ledger'))).toHaveLength(4)
    expect(await runFm001()).toEqual({ fenceOff, fenceOn, steps })
  })

  it('leaves nothing behind in the folder where it was played', async () => {
    const directory = freshFolder()
    await runFm001({ directory })
    expect(readdirSync(directory)).toEqual([])
    await expect(runFm001({ directory: `${directory}/missing` })).rejects.toThrow('ENOENT')
    expect(existsSync(`${directory}/missing`)).toBe(false)
  })

  it.each(PLAYS)(
    'on $name with the fence $fence has $effects, and the ledger explains both attempts',
    async ({ place, fence, effects }) => {
      const play = await playFm001(await place(), { fence })
      expect(play.effects).toBe(effects)
      expect(executionsOf(play.facts)).toMatchObject(ATTEMPTS)
      expect(play.facts.filter(({ trigger }) => trigger === 'commit')).toHaveLength(1)
      expect(checkFacts(leased, play.facts)).toEqual([])
      expect(checkP9(play.job, play.facts)).toEqual([])
    },
  )
})

async function filePlace(): Promise<Fm001Place> {
  return sqlitePlace(join(freshFolder(), 'jobs.db'))
}

async function postgresPlace(): Promise<Fm001Place> {
  const connectionString = await freshDatabase(sharedPostgres())
  const client = await connected(connectionString)
  return {
    open: (environment) =>
      openPostgresStore({ connectionString, environment, clock: 'environment' }),
    async transact(work) {
      await client.query('BEGIN')
      const result = await work(async (sql) => (await client.query(sql)).rows)
      await client.query('COMMIT')
      return result
    },
  }
}
