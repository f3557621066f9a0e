// A run whose log is damaged: once that was recorded, whoever looks at it is told the same, and the
// damaged bytes stay as they are.
import { readdirSync, readFileSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Journal,
  openFolderJournal,
  openStoreJournal,
  type RunEvent,
  type Runs,
} from 'pawl/runs'
import { openSqliteStore } from 'pawl/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { loadDriver } from '../../src/stores/sqlite/driver.ts'
import { eventsOf, freshFolder, freshRuns, outcomeOf, releaseOf } from './bench.ts'

/** A journal whose log can be damaged in a line, and what is then to stay as it is. */
interface Place {
  readonly journal: () => Promise<Journal>
  damage(line: number): void
  bytes(): unknown
}

const changed = (text: string) => text.replace('"actor":"', '"actor":"x')

function folderPlace(): Place {
  const path = freshFolder()
  const file = (name: string) => join(path, 'r1', name)
  return {
    journal: () => openFolderJournal({ path }),
    damage(line) {
      const lines = readFileSync(file('events.ndjson'), 'utf8').split('\n')
      lines[line - 1] = changed(lines[line - 1] as string)
      writeFileSync(file('events.ndjson'), lines.join('\n'))
    },
    bytes: () => ['events.ndjson', 'snapshot.json'].map((name) => readFileSync(file(name), 'utf8')),
  }
}

function sqlitePlace(): Place {
  const path = join(freshFolder(), 'runs.db')
  const raw = <T>(use: (db: InstanceType<Driver['DatabaseSync']>) => T): T => {
    const db = new (loadDriver().DatabaseSync)(path)
    try {
      return use(db)
    } finally {
      db.close()
    }
  }
  return {
    journal: async () => {
      const store = await openSqliteStore({ path })
      onTestFinished(() => store.close())
      return openStoreJournal({ store })
    },
    damage(line) {
      raw((db) => {
        db.exec('DROP TRIGGER pawl_run_events_are_never_updated')
        const { line: text } = db
          .prepare('SELECT line FROM pawl_run_events WHERE seq = ?')
          .get(line) as { line: string }
        db.prepare('UPDATE pawl_run_events SET line = ? WHERE seq = ?').run(changed(text), line)
      })
    },
    bytes: () =>
      raw((db) => [
        db.prepare('SELECT line FROM pawl_run_events ORDER BY seq').all(),
        db.prepare('SELECT snapshot FROM pawl_runs').all(),
      ]),
  }
}

type Driver = ReturnType<typeof loadDriver>

const stuck = releaseOf({
  testing: () => {
    throw new Error('stop here')
  },
})

async function damaged(place: Place): Promise<Runs> {
  const before = await freshRuns({ journal: await place.journal(), runs: [stuck] })
  expect(await outcomeOf(before, stuck)).toMatchObject({ kind: 'stopped' })
  await before.close()
  place.damage(3)
  return freshRuns({ journal: await place.journal(), runs: [stuck] })
}

describe.each([
  ['a folder', folderPlace],
  ['SQLite', sqlitePlace],
])('a damaged run in %s', (_name, make) => {
  it('is failed by resuming it, with line and byte, and every view then says so', async () => {
    const place = make()
    const runs = await damaged(place)
    const bytes = place.bytes()
    expect(await runs.list()).toMatchObject([{ run: { run_state: 'testing' } }])
    expect(await runs.list({ check: true })).toMatchObject([{ damage: { line: 3 } }])
    const outcome = await (await runs.resume('r1')).result()
    expect(outcome).toMatchObject({
      kind: 'failed',
      reason: 'SnapshotInvalid',
      damage: { line: 3, offset: expect.any(Number) },
    })

    const run = { run_state: 'broken', ended_because: 'SnapshotInvalid' }
    for (const check of [false, true]) expect(await runs.list({ check })).toMatchObject([{ run }])
    expect(await runs.show('r1')).toMatchObject({ run, damage: { line: 3 }, holder: undefined })
    expect(await runs.journal.peek('r1')).toEqual((await runs.show('r1')).run)
    expect(await runs.explain('r1')).toMatchObject({ state: 'broken', hasEnded: true })
    expect((await eventsOf(runs)).at(-1)).toMatchObject({ type: 'RUN_FAILED' })
    await expect(runs.resume('r1')).rejects.toMatchObject({ code: 'E_RUN_ENDED' })
    expect(place.bytes()).toEqual(bytes)
  })

  it('is explained with the damage that resuming it then returns, before and after', async () => {
    const runs = await damaged(make())
    const before = await runs.explain('r1')
    const { damage } = before
    expect(before).toMatchObject({ refusal: null, hasEnded: false, continuesIn: 'broken' })
    expect(damage).toMatchObject({ line: 3, offset: expect.any(Number), why: expect.any(String) })
    expect(before.items.every(({ verdict }) => verdict === 'skip')).toBe(true)
    const outcome = await (await runs.resume('r1')).result()
    expect(outcome).toMatchObject({ kind: 'failed', damage, run: { run_state: 'broken' } })
    const refusal = { code: 'E_RUN_ENDED' }
    expect(await runs.explain('r1')).toMatchObject({ refusal, damage, hasEnded: true })
    await expect(runs.resume('r1')).rejects.toMatchObject(refusal)
  })

  it('is not shown as of a damaged event, but as it failed once that was recorded', async () => {
    const runs = await damaged(make())
    const reader = await runs.journal.read('r1')
    expect(await reader.asOf(2)).toMatchObject({ last_seq: 2 })
    for (const seq of [3, 4]) {
      const code = 'E_RUN_LOG_DAMAGED'
      await expect(reader.asOf(seq)).rejects.toMatchObject({ code, damage: { line: 3 } })
    }
    await (await runs.resume('r1')).result()
    const events = await eventsOf(runs)
    expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5])
    expect(await reader.asOf(2)).toMatchObject({ last_seq: 2, run_state: 'build' })
    expect(await reader.asOf(3)).toMatchObject({ issues: { SnapshotInvalid: { status: 'open' } } })
    expect(await reader.asOf(events.length)).toEqual((await runs.show('r1')).run)
    expect(await reader.asOf(events.length + 1)).toBeUndefined()
  })

  it('is sent to telemetry with its failure, and does not delay other runs', async () => {
    const place = make()
    const runs = await damaged(place)
    await runs.close()
    const sent: RunEvent[] = []
    const telemetry = {
      name: 'sink',
      send: async (all: readonly unknown[]) => void sent.push(...(all as RunEvent[])),
    }
    const telemetryFolder = join(freshFolder(), 'telemetry')
    const options = { runs: [stuck], telemetry, telemetryFolder }
    const first = await freshRuns({ ...options, journal: await place.journal() })
    await (await first.start(stuck, { runId: 'r2' })).result()
    await first.close()
    expect(sent.some(({ run_id }) => run_id === 'r2')).toBe(true)
    const second = await freshRuns({ ...options, journal: await place.journal() })
    await (await second.resume('r1')).result()
    await second.close()
    const failures = () =>
      sent.filter(({ run_id, type }) => run_id === 'r1' && type === 'RUN_FAILED')
    expect(failures()).toHaveLength(1)
    const third = await freshRuns({ ...options, journal: await place.journal() })
    await third.close()
    expect(failures()).toHaveLength(1)
  })
})

describe('a damaged run in a folder', () => {
  it('has a second snapshot, of its failure, until its log is restored', async () => {
    const path = freshFolder()
    const file = (name: string) => join(path, 'r1', name)
    const runs = await freshRuns({ folder: path, runs: [stuck] })
    await outcomeOf(runs, stuck)
    const log = readFileSync(file('events.ndjson'), 'utf8')
    writeFileSync(file('events.ndjson'), changed(log))
    await (await runs.resume('r1')).result()
    const failed = JSON.parse(readFileSync(file('snapshot.failed.json'), 'utf8'))
    expect(failed).toMatchObject({ run_state: 'FAILED', ended_because: 'SnapshotInvalid' })
    writeFileSync(file('events.ndjson'), log)
    expect(await runs.list()).toMatchObject([{ run: { run_state: 'testing' } }])
    await (await runs.resume('r1')).result()
    expect(readdirSync(join(path, 'r1'))).not.toContain('snapshot.failed.json')
  })

  it('is listed with its problem if it cannot be read, beside the other runs', async () => {
    const path = freshFolder()
    const runs = await freshRuns({ folder: path, runs: [stuck] })
    await outcomeOf(runs, stuck)
    await outcomeOf(runs, stuck, 'r2')
    unlinkSync(join(path, 'r1', 'snapshot.json'))
    symlinkSync('/etc/hostname', join(path, 'r1', 'snapshot.json'))
    expect(await runs.list()).toMatchObject([
      { runId: 'r1', problem: expect.stringContaining('is a link, not a file') },
      { runId: 'r2', run: { run_state: 'testing' } },
    ])
  })

  it('is not shown as held by a process that has ended', async () => {
    const path = freshFolder()
    const runs = await freshRuns({ folder: path, runs: [stuck] })
    await outcomeOf(runs, stuck)
    const { hostname } = await import('node:os')
    const note = (pid: number, host = hostname()) =>
      writeFileSync(
        join(path, 'r1', '.holder.json'),
        `${JSON.stringify({ host, pid, since: '2020-01-01T00:00:00.000Z' })}\n`,
      )
    note(2 ** 22 + 1)
    expect((await runs.show('r1')).holder).toBeUndefined()
    // The number of a process that began after the note was written.
    note(process.ppid)
    expect((await runs.show('r1')).holder).toBeUndefined()
    note(1, 'another-machine')
    expect((await runs.show('r1')).holder).toMatchObject({ host: 'another-machine' })
  })
})
