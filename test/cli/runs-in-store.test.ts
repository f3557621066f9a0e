// `pawl run --in-store`: the same commands for runs that live in a store.
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { freshStoreDatabase } from '../support/postgres/databases.ts'
import { ended, linesOf, type Place, said } from './pawl.ts'
import { runPlace } from './run-place.ts'

interface Said {
  readonly type?: string
  readonly outcome?: string
  readonly run_state?: string
}

const LONG = 120_000

/** Where the store is, and how its runs are named on the command line. */
const places: Readonly<Record<string, () => Promise<Place>>> = {
  'a SQLite file': async () => runPlace(),
  PostgreSQL: async () => runPlace(await freshStoreDatabase()),
}

describe.each(Object.entries(places))('runs in %s', (_, open) => {
  it(
    'start, are explained, resume, and are shown as runs in a folder are',
    async () => {
      const own = await open()
      const start = await own.run(['run', 'start', 'docs', '{"a":1}', '--id', 'd1', '--in-store'])
      expect(start).toMatchObject({ code: 1, stdout: 'd1 DRAFTING\n' })
      expect(existsSync(join(own.folder, 'runs'))).toBe(false)
      const explained = await own.json('run', 'explain', 'd1', '--in-store', '--force', 'draft')
      expect(explained).toMatchObject([
        { continuesIn: 'PLAN_READY', items: [{ key: 'draft', verdict: 'run', because: 'forced' }] },
      ])
      writeFileSync(join(own.folder, 'ink'), '')
      const lines = await own.json<Said>('run', 'resume', 'd1', '--in-store')
      expect(lines[0]).toMatchObject({ type: 'RESUME_REWIND' })
      expect(lines.at(-1)).toMatchObject({ outcome: 'done', run_state: 'DONE' })
      expect(lines.some(({ type }) => type === 'WORK_ITEM_STARTED')).toBe(false)
      expect(await own.ok('run', 'list', '--in-store')).toMatch(/^d1\tDONE\trun\t\d+\t1\/1\t0\n$/)
      expect(await own.json('run', 'show', 'd1', '--at', '1', '--in-store')).toMatchObject([
        { run_state: 'CREATED', last_seq: 1 },
      ])
      const diff = await own.json('run', 'diff', 'd1', '--from', '6', '--to', '7', '--in-store')
      expect(diff).toContainEqual({ path: ['run_state'], before: 'PLAN_READY', after: 'DRAFTING' })
      const created = ['run', 'events', 'd1', '--type', 'RUN_CREATED', '--in-store']
      expect(await own.json(...created)).toHaveLength(1)
      expect(await own.run(['run', 'verify', '--in-store'])).toMatchObject({ code: 0 })
    },
    LONG,
  )

  it(
    'go to a folder and come back, are forked, linked and cancelled',
    async () => {
      const own = await open()
      await own.run(['run', 'start', 'docs', '--id', 'd1', '--in-store'])
      await own.ok('run', 'export', 'd1', '--out', 'd1.bundle', '--in-store')
      expect(await own.ok('run', 'import', 'd1.bundle', '--dir', 'other')).toBe('d1\n')
      const snapshot = await own.ok('run', 'replay', 'd1', '--dir', 'other')
      expect(await own.ok('run', 'replay', 'd1', '--in-store')).toBe(snapshot)
      expect(await own.ok('run', 'import', 'd1.bundle', '--in-store')).toBe('d1\n')
      expect(await own.ok('run', 'fork', 'd1', '--at', '3', '--id', 'd2', '--in-store')).toBe(
        'd2\n',
      )
      await own.ok('run', 'link', 'd2', 'e'.repeat(40), '--in-store')
      await own.ok('run', 'cancel', 'd2', '--reason', 'not needed', '--in-store')
      const [shown] = await own.json('run', 'show', 'd2', '--in-store')
      expect(shown).toMatchObject({ run_state: 'CANCELLED', commits: ['e'.repeat(40)] })
      expect(await own.run(['run', 'resume', 'd2', '--in-store'])).toMatchObject({ code: 5 })
    },
    LONG,
  )

  it(
    'are held by one process, and are cancelled by a request to it',
    async () => {
      const own = await open()
      const args = ['run', 'start', 'docs', '{"sleeps":true}', '--id', 'd1', '--json', '--in-store']
      const child = own.start(args)
      await said(child.stdout, /WORK_ITEM_FINISHED/)
      const end = ended(child)
      expect(await own.run(['run', 'resume', 'd1', '--in-store'])).toMatchObject({ code: 5 })
      const cancel = ['run', 'cancel', 'd1', '--reason', 'enough', '--in-store']
      expect(await own.ok(...cancel)).toBe('d1 requested\n')
      const { code, stdout } = await end
      expect(code).toBe(1)
      expect(linesOf<Said>(stdout).at(-1)).toMatchObject({ outcome: 'cancelled' })
    },
    LONG,
  )
})

describe('where runs are', () => {
  it(
    'can be said once, in the configuration or the environment',
    async () => {
      const own = runPlace()
      writeFileSync(join(own.folder, 'pawl.config.json'), '{"runs":"./runs.ts","runsIn":"store"}')
      await own.run(['run', 'start', 'docs', '--id', 'd1'])
      expect(await own.ok('run', 'list')).toContain('d1\t')
      const folder = await own.run(['run', 'list'], { env: { PAWL_RUNS_IN: 'folder' } })
      expect(folder).toMatchObject({ code: 4 })
      const named = await own.run(['run', 'list', '--dir', '.'])
      expect(named).toMatchObject({ code: 0, stdout: '' })
    },
    LONG,
  )

  it(
    'is refused where it makes no sense',
    async () => {
      const own = runPlace()
      const both = await own.run(['run', 'list', '--dir', '.', '--in-store'])
      expect(both).toMatchObject({ code: 2, stderr: expect.stringMatching(/used together/) })
      const env = { PAWL_RUNS_IN: 'cloud' }
      expect(await own.run(['run', 'list'], { env })).toMatchObject({ code: 2 })
      writeFileSync(join(own.folder, 'pawl.config.json'), '{"runsIn":"cloud"}')
      const config = await own.run(['run', 'list'])
      expect(config).toMatchObject({ code: 2, stderr: expect.stringMatching(/E_CONFIG_INVALID/) })
    },
    LONG,
  )

  it(
    'is told apart from a store that is not there',
    async () => {
      const own = runPlace()
      const result = await own.run(['run', 'list', '--in-store'])
      expect(result).toMatchObject({ code: 4, stderr: expect.stringMatching(/E_STORE_MISSING/) })
    },
    LONG,
  )
})
