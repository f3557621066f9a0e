// Stores on one SQLite file, under a scheduler that owns every turn: when a call begins, when a
// group is committed, when whoever found the file locked tries again, and when the function of a
// commit goes on. The file is in memory where the machine has such a place, and is put back to the
// beginning of a scene before every interleaving.
//
// The triggers that guard the tables are dropped: the verbs must keep the promises without a net,
// and rows can be put back.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Scheduler } from 'fast-check'
import { SeededRandom, SequentialIds } from 'pawl/testing'
import type { Lifecycle } from '../../src/core/lifecycles/lifecycle.ts'
import type { Timer } from '../../src/core/ports.ts'
import type { Environment } from '../../src/environment/system.ts'
import type { CommitTx, Store } from '../../src/stores/contract/store.ts'
import { type Database, loadDriver } from '../../src/stores/sqlite/driver.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { judge } from './judge.ts'
import { makeScene, type Scene, type SceneName } from './scenes.ts'
import { type Caller, VERBS, type VerbName } from './verbs.ts'
import { type Moment, Witness } from './witness.ts'

/** Pauses up to this long are those of whoever found the file locked. */
const PAUSE_MAX_MS = 25
const START = 1_700_000_000_000
const TABLES = ['pawl_jobs', 'pawl_ledger', 'pawl_outbox', 'pawl_ended_counts', 'pawl_pruned']
const OWN = 'CREATE TABLE own_runs (job TEXT NOT NULL, claim TEXT NOT NULL)'

/** Who meets where. */
export interface Meeting {
  readonly lifecycle: Lifecycle
  readonly scene: SceneName
  readonly verbs: readonly VerbName[]
  /** In which of three processes each caller is. */
  readonly places: readonly number[]
}

/** A scene, and the rows that it begins with. */
interface SavedScene {
  readonly scene: Scene
  readonly time: number
  readonly restore: string
}

/** The stage, with three stores that take part and one that only reads. */
export class SqliteStage {
  /** How many interleavings there were. */
  played = 0
  readonly #folder: string
  readonly #raw: Database
  readonly #stores: Store[] = []
  readonly #scenes = new Map<string, SavedScene>()
  readonly #ids = new SequentialIds()
  readonly #timers = new Set<{ at: number; callback: () => void }>()
  #time = START
  #times: number[] = []
  #scheduler: Scheduler | undefined

  private constructor(folder: string, raw: Database) {
    this.#folder = folder
    this.#raw = raw
  }

  static async open(lifecycles: readonly Lifecycle[]): Promise<SqliteStage> {
    const inMemory = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
    const folder = mkdtempSync(join(inMemory, 'pawl-interleavings-'))
    const path = join(folder, 'jobs.db')
    const { DatabaseSync } = loadDriver()
    const raw = new DatabaseSync(path, { timeout: 0 })
    const stage = new SqliteStage(folder, raw)
    const environment = stage.#environment()
    for (let i = 0; i < 4; i++) {
      // Time is moved by leases at once, and nobody is to give up for it.
      const store = await openSqliteStore({ path, environment, lifecycles, busyTimeoutMs: 1e12 })
      stage.#stores.push(store)
    }
    raw.exec(OWN)
    const triggers = raw.prepare("SELECT name FROM sqlite_master WHERE type = 'trigger'").all()
    for (const { name } of triggers as { name: string }[]) raw.exec(`DROP TRIGGER ${name}`)
    return stage
  }

  async close(): Promise<void> {
    for (const store of this.#stores) await store.close()
    this.#raw.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #environment(): Environment {
    return {
      clock: { now: () => this.#time },
      random: new SeededRandom(1),
      ids: this.#ids,
      timers: {
        after: (delayMs, callback) => this.#after(delayMs, callback),
        defer: (callback) => {
          if (this.#scheduler === undefined) setImmediate(callback)
          else void this.#turn('the next group').then(callback)
        },
      },
    }
  }

  #after(delayMs: number, callback: () => void): Timer {
    const entry = { at: this.#time + delayMs, callback }
    this.#timers.add(entry)
    const fire = () => {
      if (this.#timers.delete(entry)) callback()
    }
    if (delayMs <= PAUSE_MAX_MS) void this.#turn('found it locked').then(fire)
    return { cancel: () => void this.#timers.delete(entry) }
  }

  #turn(label: string): Promise<void> {
    if (this.#scheduler === undefined) return Promise.resolve()
    return this.#scheduler.schedule(Promise.resolve(), label)
  }

  #pass(ms: number): void {
    this.#time += ms
    this.#times.push(this.#time)
    for (const entry of [...this.#timers]) {
      if (entry.at <= this.#time && this.#timers.delete(entry)) entry.callback()
    }
  }

  #look(): Moment {
    const rows = this.#raw.prepare('SELECT id, seq FROM pawl_jobs').all()
    const seqs = (rows as { id: string; seq: number }[]).map(({ id, seq }) => [id, seq] as const)
    return { time: this.#time, seqs: new Map(seqs) }
  }

  /** Makes a scene, or puts back its rows. */
  async #setUp(name: SceneName, lifecycle: Lifecycle): Promise<Scene> {
    const key = `${lifecycle.name} ${name}`
    const saved = this.#scenes.get(key) ?? (await this.#make(key, name, lifecycle))
    this.#raw.exec(saved.restore)
    this.#time = saved.time
    this.#times = [saved.time]
    this.#timers.clear()
    return saved.scene
  }

  async #make(key: string, name: SceneName, lifecycle: Lifecycle): Promise<SavedScene> {
    this.#raw.exec(TABLES.map((table) => `DELETE FROM ${table};`).join(''))
    this.#time = START
    const ids = [this.#ids.next(), this.#ids.next()]
    const [store] = this.#stores as [Store]
    const scene = await makeScene(name, lifecycle, store, ids, (ms) => this.#pass(ms))
    const copy = `scene_${this.#scenes.size}`
    const steps = TABLES.map((table) => {
      this.#raw.exec(`CREATE TABLE ${copy}_${table} AS SELECT * FROM ${table}`)
      return `DELETE FROM ${table}; INSERT INTO ${table} SELECT * FROM ${copy}_${table};`
    })
    const restore = `BEGIN IMMEDIATE; DELETE FROM own_runs; ${steps.join(' ')} COMMIT`
    const saved = { scene, time: this.#time, restore }
    this.#scenes.set(key, saved)
    return saved
  }

  /** Whether a caller who is alone there changes anything. */
  async acts(
    name: SceneName,
    lifecycle: Lifecycle,
    verb: VerbName,
    place: number,
  ): Promise<boolean> {
    const scene = await this.#setUp(name, lifecycle)
    const before = this.#everything()
    const witness = new Witness({ look: () => this.#look(), turn: () => Promise.resolve() })
    await VERBS[verb](this.#caller(scene, witness, this.#stores[0] as Store, place))
    return this.#everything() !== before
  }

  #everything(): string {
    const rows = TABLES.map((table) => this.#raw.prepare(`SELECT * FROM ${table}`).all())
    return JSON.stringify([rows, this.#time])
  }

  /** Lets callers meet in a scene, in the order of a schedule; what came of it that is wrong. */
  async play(
    { lifecycle, scene: name, verbs, places }: Meeting,
    scheduler: Scheduler,
  ): Promise<readonly string[]> {
    this.played++
    const scene = await this.#setUp(name, lifecycle)
    const witness = new Witness({ look: () => this.#look(), turn: (label) => this.#turn(label) })
    const start = this.#look()
    this.#scheduler = scheduler
    const flows = verbs.map((verb, i) => {
      const store = this.#stores[places[i] ?? 0] as Store
      return VERBS[verb](this.#caller(scene, witness, store, i))
    })
    // All are waited for, also where one fails: the next interleaving is to find nothing open.
    const ends = await scheduler.waitFor(Promise.allSettled(flows))
    this.#scheduler = undefined
    for (const end of ends) if (end.status === 'rejected') throw end.reason
    const reader = this.#stores[3] as Store
    const runs = this.#raw.prepare('SELECT job, claim FROM own_runs').all()
    return judge({
      scene,
      start,
      told: witness.told,
      times: this.#times,
      reader,
      runs: runs as { job: string; claim: string }[],
      skipsLocked: false,
    })
  }

  #caller(scene: Scene, witness: Witness, store: Store, place: number): Caller {
    return {
      name: `caller ${place + 1}`,
      store,
      witness,
      scene,
      jobs: place % 2 === 0 ? scene.jobs : scene.jobs.toReversed(),
      holds: scene.holds[place] ?? scene.holds.at(-1) ?? [],
      newId: () => this.#ids.next(),
      pass: (ms) => this.#pass(ms),
      noteRun: (tx: CommitTx, jobId, claim) =>
        tx.query('INSERT INTO own_runs VALUES (?, ?)', [jobId, claim]),
    }
  }
}
