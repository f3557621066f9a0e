// Processes on one SQLite file agree on the time, whatever their wall clocks say. The clocks of the
// machine are injected here; `test/failure-modes/wall-clock.test.ts` has real processes.
import { afterEach, describe, expect, it } from 'vitest'
import { standard } from '../../src/core/lifecycles/standard.ts'
import type { HostTime } from '../../src/core/ports.ts'
import { Doctor } from '../../src/doctor/doctor.ts'
import { circumstancesOf } from '../../src/engine/operators/circumstances.ts'
import { explain } from '../../src/engine/operators/explain.ts'
import type { Environment } from '../../src/environment/system.ts'
import type { EnqueueItem, Held, Store } from '../../src/stores/contract/store.ts'
import { EXTEND_LEASES } from '../../src/stores/sqlite/clock.ts'
import type { SqliteOptions } from '../../src/stores/sqlite/options.ts'
import { openSqlite, openSqliteStore } from '../../src/stores/sqlite/store.ts'
import type { TimeChange } from '../../src/stores/store-time.ts'
import { testEnvironment } from '../../src/testing/test-environment.ts'

const WALL = 1_800_000_000_000
const LEASE_MS = 30_000

/** A machine whose processes share the monotonic clock and may have wall clocks of their own. */
class Machine {
  boot = 'boot-1'
  elapsedMs = 90_000.5
  suspendedMs = 0
  readonly #file = `file:/time-${Math.random()}?vfs=memdb`
  readonly #open: Store[] = []

  pass(ms: number): void {
    this.elapsedMs += ms
  }

  process(wallOffMs = 0): Process {
    return new Process(this, wallOffMs)
  }

  async open(process: Process, options: Partial<SqliteOptions> = {}): Promise<Store> {
    const { environment } = process
    const onTimeChange = (change: TimeChange) => void process.changes.push(change)
    const store = await openSqliteStore({ path: this.#file, environment, onTimeChange, ...options })
    this.#open.push(store)
    return store
  }

  async query(sql: string): Promise<Record<string, unknown>[]> {
    const { store, query } = await openSqlite({
      path: this.#file,
      environment: testEnvironment(),
    })
    this.#open.push(store)
    return (await query(sql)) as Record<string, unknown>[]
  }

  async close(): Promise<void> {
    for (const store of this.#open) await store.close()
  }
}

class Process implements HostTime {
  readonly changes: TimeChange[] = []
  readonly environment: Environment
  readonly #machine: Machine
  offMs: number
  /** By how much its monotonic clock is faked. */
  fakedMs = 0

  constructor(machine: Machine, offMs: number) {
    this.#machine = machine
    this.offMs = offMs
    this.environment = { ...testEnvironment(), clock: { now: () => 0, host: this } }
  }

  get boot(): string {
    return this.#machine.boot
  }

  wall(): number {
    const { elapsedMs, suspendedMs } = this.#machine
    return WALL + Math.floor(elapsedMs - 90_000) + suspendedMs + this.offMs
  }

  elapsed(): number {
    return this.#machine.elapsedMs + this.fakedMs
  }

  suspended(): number {
    return this.#machine.suspendedMs - this.fakedMs
  }
}

let machine = new Machine()
afterEach(async () => {
  await machine.close()
  machine = new Machine()
})

let jobs = 0

function item(): EnqueueItem {
  const jobId = `00000000-0000-7000-8000-${String(++jobs).padStart(12, '0')}`
  return { lifecycle: standard, input: '{}', command: { jobId, type: 'mail', queue: 'main' } }
}

async function claimOne(store: Store): Promise<Held> {
  const [held] = await store.claim({ worker: 'w1', limit: 1, leaseMs: LEASE_MS, start: true })
  return held as Held
}

describe('on one SQLite file', () => {
  it('a process that was idle while the time ran slower has the time of the others', async () => {
    const [setBack, idle] = [machine.process(), machine.process()]
    const [busy, late] = [await machine.open(setBack), await machine.open(idle)]
    setBack.offMs = -60_000
    await busy.enqueue([item()])
    expect(setBack.changes).toMatchObject([{ reason: 'slower' }])
    machine.pass(600_000)
    // Nothing was read from the file since the time runs slower.
    expect(late.now()).toBe(WALL + 600_000)
    await late.enqueue([item()])
    await busy.enqueue([item()])
    expect(late.now()).toBe(busy.now())
    expect(busy.now()).toBeLessThan(WALL + 580_000)
  })

  it('the time that a transaction has moved counts for others when it is committed', async () => {
    const process = machine.process()
    const store = await machine.open(process)
    const other = await machine.open(machine.process())
    const moved = async (end: () => void) => {
      process.offMs += 100_000
      const before = store.now()
      const [inside] = await store
        .transaction(async (tx) => {
          const [answer] = await store.enqueue([item()], { tx })
          expect(answer).toMatchObject({ kind: 'created', job: { runAt: before + 100_000 } })
          expect([store.now(), store.timeStatus?.()?.aheadMs]).toEqual([before, -100_000])
          end()
          return [answer]
        })
        .catch(() => [])
      return { inside, before }
    }
    const undone = await moved(() => {
      throw new Error('it is rolled back')
    })
    expect(undone.inside).toBeUndefined()
    // Nothing was recorded: the time must not have run ahead, for it would run back now.
    expect([store.now(), other.now()]).toEqual([WALL, WALL])
    process.offMs -= 100_000
    const { before } = await moved(() => {})
    // What others have recorded counts at once, also inside.
    await other.transaction(async (tx) => {
      await other.enqueue([item()], { tx })
      expect(other.now()).toBe(before + 100_000)
    })
    await other.enqueue([item()])
    expect([store.now(), other.now()]).toEqual([before + 100_000, before + 100_000])
  })

  it('processes whose wall clocks differ by ten minutes have the same time', async () => {
    const stores: Store[] = []
    for (const off of [0, 600_000, -600_000, 30_000]) {
      const process = machine.process(off)
      stores.push(await machine.open(process))
      await stores[0]?.reportWorker({ id: 'w1', state: 'idle', info: '{}' })
      if (off !== 0) expect(process.changes).toMatchObject([{ reason: 'disputed', aheadMs: -off }])
    }
    expect(new Set(stores.map((store) => store.now()))).toEqual(new Set([WALL]))
    expect(stores[1]?.timeStatus?.()).toMatchObject({ aheadMs: -600_000, leftMs: 0 })
  })

  it('a process whose monotonic clock is faked has the same time', async () => {
    const first = await machine.open(machine.process())
    const faked = machine.process()
    faked.fakedMs = 1_700_000_000_000
    const second = await machine.open(faked)
    machine.pass(5000)
    expect(second.now()).toBe(first.now())
  })

  it('a wall clock that steps forward moves the time and every live lease', async () => {
    const process = machine.process()
    const store = await machine.open(process)
    const other = await machine.open(machine.process())
    await store.enqueue([item(), item()])
    await store.reportWorker({ id: 'w1', state: 'idle', info: '{}' })
    const held = await claimOne(store)
    machine.pass(LEASE_MS - 1000)
    const late = await claimOne(store)
    machine.pass(1001)
    process.offMs = 600_000
    // The first lease ended before the step, the second one did not.
    const recovered = await store.recover(10)
    expect(recovered.map((answer) => 'job' in answer && answer.job.id)).toEqual([held.job.id])
    expect(process.changes).toMatchObject([{ reason: 'forward', movedMs: 600_000, aheadMs: 0 }])
    expect(store.now()).toBe(WALL + LEASE_MS + 1 + 600_000)
    const beat = {
      ref: late.ref,
      fence: { attempt: 1, claim: late.job.execution?.claim as string },
    }
    expect(await other.heartbeat([beat], LEASE_MS)).toEqual({ lost: [], cancelling: [] })
    expect(other.now()).toBe(store.now())
    const [worker] = await other.listWorkers()
    expect(other.now() - (worker?.seenAt ?? 0)).toBe(LEASE_MS + 1)
    expect((await other.get(late.job.id))?.crashes).toBe(0)
  })

  it('a wall clock that steps back makes the time run slower', async () => {
    const process = machine.process()
    const store = await machine.open(process)
    await store.enqueue([item()])
    await claimOne(store)
    process.offMs = -600_000
    await store.promote(1)
    expect(process.changes).toMatchObject([{ reason: 'slower', aheadMs: 600_000 }])
    const before = store.now()
    machine.pass(25_000)
    expect(store.now() - before).toBe(24_000)
    machine.pass(6250)
    expect(await store.recover(10)).toHaveLength(1)
    machine.pass(600_000 * 25)
    expect(store.timeStatus?.()).toMatchObject({ leftMs: 0 })
    expect(Math.abs(store.now() - process.wall())).toBeLessThan(5)
  })

  it('one process that sees a step is enough, and nobody follows it twice', async () => {
    const [one, two] = [machine.process(), machine.process()]
    const stores = [await machine.open(one), await machine.open(two)] as const
    one.offMs = two.offMs = 30_000
    await stores[0].promote(1)
    await stores[1].promote(1)
    expect([...one.changes, ...two.changes]).toHaveLength(1)
    expect(stores[1].now()).toBe(WALL + 30_000)
  })

  it('a process started after a step follows the wall clock if no worker disagrees', async () => {
    const first = await machine.open(machine.process())
    await first.reportWorker({ id: 'w1', state: 'idle', info: '{}' })
    const process = machine.process(30_000)
    const second = await machine.open(process)
    expect(second.now()).toBe(WALL)
    machine.pass(16_000)
    await second.promote(1)
    expect(process.changes.map(({ reason }) => reason)).toEqual(['disputed', 'forward'])
    expect(second.now()).toBe(WALL + 46_000)
  })

  it('after a boot the time begins at wall time, and never below the last fact', async () => {
    const store = await machine.open(machine.process())
    await store.enqueue([item()])
    machine.boot = 'boot-2'
    machine.elapsedMs = 3.5
    const early = machine.process(30_000)
    const again = await machine.open(early)
    // The wall clock of the machine has lost a minute and a half with its boot.
    expect(early.changes).toMatchObject([{ reason: 'boot' }])
    expect(again.now()).toBe(WALL)
    expect(again.timeStatus?.()?.leftMs).toBe(WALL - early.wall())
  })

  it('the time of a suspension is counted once, and ends no lease', async () => {
    const process = machine.process()
    const store = await machine.open(process)
    await store.enqueue([item()])
    await claimOne(store)
    machine.suspendedMs = 3_600_000
    expect(await store.recover(10)).toEqual([])
    expect(process.changes).toMatchObject([{ reason: 'forward', movedMs: 3_600_000 }])
    const late = await machine.open(machine.process())
    expect(late.now()).toBe(store.now())
    expect(store.now()).toBe(process.wall())
  })

  it('a suspension that the wall clock does not show changes no time', async () => {
    const process = machine.process()
    const store = await machine.open(process)
    machine.suspendedMs = 5000
    process.offMs = -5000
    await store.promote(1)
    expect(process.changes).toMatchObject([{ reason: 'resumed', movedMs: 0 }])
    const late = await machine.open(machine.process(-5000))
    expect([store.now(), late.now()]).toEqual([WALL, WALL])
  })

  it('a change of the time is undone with its transaction, and made by the next one', async () => {
    const process = machine.process()
    let isBroken = false
    const crashPoint = (name: string) => {
      if (isBroken && name === 'promote.written') throw new Error('the disk is full')
    }
    Object.assign(process.environment, { crashPoint })
    const store = await machine.open(process)
    process.offMs = 30_000
    isBroken = true
    await expect(store.promote(1)).rejects.toThrow('the disk is full')
    expect(process.changes).toEqual([])
    isBroken = false
    await store.promote(1)
    expect(process.changes).toMatchObject([{ reason: 'forward' }])
    expect(store.now()).toBe(WALL + 30_000)
  })

  it('a store that may not change the time uses that of others', async () => {
    const process = machine.process()
    const owner = await machine.open(process)
    const follower = machine.process()
    const store = await machine.open(follower, { changesTime: false })
    process.offMs = follower.offMs = 30_000
    await store.promote(1)
    expect(store.now()).toBe(WALL)
    await owner.promote(1)
    await store.promote(1)
    expect(store.now()).toBe(WALL + 30_000)
    expect(follower.changes).toEqual([])
  })

  it('the last hundred changes are kept', async () => {
    const process = machine.process()
    const store = await machine.open(process)
    for (let i = 1; i <= 120; i++) {
      process.offMs = i * 2000
      await store.promote(1)
    }
    const rows = await machine.query('SELECT min(number) AS first, count(*) AS n FROM pawl_time')
    expect(rows).toEqual([{ first: 22, n: 100 }])
  })

  it('a file without its table of times can be opened and mended', async () => {
    const store = await machine.open(machine.process())
    await machine.query('DROP TABLE pawl_time')
    const [drift] = await store.examination.drift()
    expect(drift).toMatchObject({ name: 'pawl_time', problem: 'missing' })
    const again = await machine.open(machine.process(), { onFindings: 'warn' })
    await again.examination.restore(drift as never)
    await again.enqueue([item()])
    expect(await machine.query('SELECT reason FROM pawl_time')).toEqual([{ reason: 'first' }])
  })

  it('the doctor reports a wall clock that differs, and a time that was moved', async () => {
    const process = machine.process()
    const store = await machine.open(process)
    const look = async (examined: Store) => {
      const { environment } = process
      const doctor = new Doctor({ store: examined, environment, lifecycles: [standard] })
      const { findings } = await doctor.check({})
      return findings.filter(({ check }) => check === 'times-agree')
    }
    expect(await look(store)).toEqual([])
    await store.reportWorker({ id: 'w1', state: 'idle', info: '{}' })
    const other = await machine.open(machine.process(600_000))
    expect(await look(other)).toMatchObject([
      { severity: 'warning', what: 'it is 10m behind the wall clock of this process' },
    ])
    process.offMs = 30_000
    await store.promote(1)
    const [moved] = await look(store)
    expect(moved).toMatchObject({ severity: 'notice' })
    expect(moved?.what).toMatch(/^it was moved forward by 30s to wall time/)
    process.offMs = -30_000
    await store.promote(1)
    const [slower] = await look(store)
    expect(slower?.what).toBe('it is 1m ahead of the wall clock, and runs slower until they agree')
    machine.pass(24 * 3_600_000 + 60_000 * 25)
    expect(await look(store)).toEqual([])
  })

  it('an explanation says by how much the time of the file differs', async () => {
    const process = machine.process()
    const store = await machine.open(process)
    await store.reportWorker({ id: 'w1', state: 'idle', info: '{}' })
    const one = item()
    await store.enqueue([one])
    const other = await machine.open(machine.process(-600_000))
    const circumstances = await circumstancesOf(other, [standard], one.command.jobId)
    expect(explain(circumstances).says).toMatch(
      /The time of the file is 10m ahead of this wall clock\.$/,
    )
  })

  it('every lease that the schema knows is extended when the time moves', async () => {
    await machine.open(machine.process())
    const tables = await machine.query(`
      SELECT m.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c
      WHERE m.type = 'table' AND c.name = 'lease_until' AND m.name <> 'pawl_ledger'`)
    for (const { name } of tables) {
      const sql = `UPDATE ${String(name)} SET lease_until = lease_until + ?1`
      expect(EXTEND_LEASES.some((text) => text.startsWith(sql))).toBe(true)
    }
    expect(tables.length).toBeGreaterThan(2)
  })
})
