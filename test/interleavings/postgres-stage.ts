// Two stores on one PostgreSQL, each behind a gate that holds a verb between two of its statements,
// and a third that only reads. Tables are put back to the beginning of a scene before every
// meeting, by a superuser whom no trigger stops; the stores have all of theirs.
import { SequentialIds } from 'pawl/testing'
import pg from 'pg'
import { LIFECYCLES } from '../../src/core/lifecycles/index.ts'
import type { Lifecycle } from '../../src/core/lifecycles/lifecycle.ts'
import { systemEnvironment } from '../../src/environment/system.ts'
import type { CommitTx, Store } from '../../src/stores/contract/store.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import { Gate, gatedClient } from './gate.ts'
import { judge } from './judge.ts'
import { makeScene, type Scene, type SceneName } from './scenes.ts'
import { type Caller, VERBS, type VerbName } from './verbs.ts'
import { type Moment, Witness } from './witness.ts'

const START = 1_700_000_000_000
const TABLES = [
  ...['jobs', 'ledger', 'outbox', 'ended_counts', 'pruned', 'tombstones', 'gates'],
  ...['admissions', 'groups', 'links', 'flows'],
]
/** How often the server is asked whether a caller waits, before that is an error. */
const LOOKS_MAX = 20_000

/** One of the two who meet. */
interface Side {
  readonly name: string
  readonly store: Store
  readonly gate: Gate
}

interface SavedScene {
  readonly scene: Scene
  readonly time: number
  readonly restore: string
}

/** What a verb does in a scene when nobody is in its way. */
export interface Solo {
  readonly statements: number
  /** Whether anything was different afterwards. */
  readonly acts: boolean
}

/** The stage. */
export class PostgresStage {
  readonly schema = `interleavings_${process.pid}`
  readonly #sides: Side[] = []
  /** How many meetings there were. */
  played = 0
  readonly #admin: pg.Client
  readonly #scenes = new Map<string, SavedScene>()
  readonly #ids = new SequentialIds()
  #reader: Store | undefined
  #time = START
  #times: number[] = []

  private constructor(admin: pg.Client) {
    this.#admin = admin
  }

  static async open(url: string): Promise<PostgresStage> {
    const admin = new pg.Client({ connectionString: url })
    await admin.connect()
    const stage = new PostgresStage(admin)
    stage.#reader = await stage.#openStore(url, 'the reader', {})
    for (const name of ['caller 1', 'caller 2']) {
      const gate = new Gate()
      const store = await stage.#openStore(url, name, { Client: gatedClient(gate) })
      stage.#sides.push({ name, store, gate })
    }
    await admin.query(`CREATE TABLE ${stage.schema}.own_runs (job text, claim text)`)
    await admin.query('SET session_replication_role = replica; SET synchronous_commit = off')
    return stage
  }

  #openStore(url: string, name: string, driver: object): Promise<Store> {
    const { timers, random } = systemEnvironment()
    return openPostgresStore({
      connectionString: url,
      config: { ...driver, application_name: name },
      schema: this.schema,
      connections: 2,
      lifecycles: LIFECYCLES,
      durability: 'relaxed',
      clock: 'environment',
      environment: { clock: { now: () => this.#time }, ids: this.#ids, timers, random },
    })
  }

  async close(): Promise<void> {
    for (const { store } of this.#sides) await store.close()
    await this.#reader?.close()
    await this.#admin.query(`DROP SCHEMA ${this.schema} CASCADE`)
    await this.#admin.end()
  }

  /** The two who can be held. */
  get sides(): [Side, Side] {
    return [this.#side(0), this.#side(1)]
  }

  get reader(): Store {
    return this.#reader as Store
  }

  newId(): string {
    return this.#ids.next()
  }

  /** What the server has refused to either side so far. */
  get refusals(): string[] {
    return this.#sides.flatMap(({ gate }) => gate.refusals)
  }

  /** Moves the time by which both sides judge. */
  pass(ms: number): void {
    this.#time += ms
    this.#times.push(this.#time)
  }

  async #look(): Promise<Moment> {
    const { rows } = await this.#admin.query(`SELECT id, seq FROM ${this.schema}.jobs`)
    const seqs = (rows as { id: string; seq: number }[]).map(({ id, seq }) => [id, seq] as const)
    return { time: this.#time, seqs: new Map(seqs) }
  }

  async #setUp(name: SceneName, lifecycle: Lifecycle): Promise<Scene> {
    const key = `${lifecycle.name} ${name}`
    const saved = this.#scenes.get(key) ?? (await this.#make(key, name, lifecycle))
    await this.#admin.query(saved.restore)
    this.#time = saved.time
    this.#times = [saved.time]
    return saved.scene
  }

  /** Removes everything, and begins anew. */
  async clear(): Promise<void> {
    const removals = TABLES.map((table) => `DELETE FROM ${this.schema}.${table}`)
    await this.#admin.query(removals.join(';'))
    this.#time = START
  }

  async #make(key: string, name: SceneName, lifecycle: Lifecycle): Promise<SavedScene> {
    await this.clear()
    const tables = TABLES.map((table) => `${this.schema}.${table}`)
    const ids = [this.#ids.next(), this.#ids.next()]
    const scene = await makeScene(name, lifecycle, this.#side(0).store, ids, (ms) => this.pass(ms))
    const steps = tables.map((table) => {
      const copy = `${table}_${this.#scenes.size}`
      const save = `CREATE TABLE ${copy} AS SELECT * FROM ${table}`
      return { save, restore: `DELETE FROM ${table}; INSERT INTO ${table} SELECT * FROM ${copy}` }
    })
    await this.#admin.query(steps.map(({ save }) => save).join(';'))
    const own = `DELETE FROM ${this.schema}.own_runs`
    const restore = ['BEGIN', own, ...steps.map(({ restore }) => restore), 'COMMIT'].join(';')
    const saved = { scene, time: this.#time, restore }
    this.#scenes.set(key, saved)
    return saved
  }

  #side(place: number): Side {
    return this.#sides[place] as Side
  }

  #caller(scene: Scene, witness: Witness, place: number): Caller {
    const { name, store } = this.#side(place)
    return {
      name,
      store,
      witness,
      scene,
      jobs: place === 0 ? scene.jobs : scene.jobs.toReversed(),
      holds: scene.holds[place] ?? scene.holds.at(-1) ?? [],
      newId: () => this.newId(),
      pass: (ms) => this.pass(ms),
      noteRun: (tx: CommitTx, jobId, claim) =>
        tx.query(`INSERT INTO ${this.schema}.own_runs VALUES ($1, $2)`, [jobId, claim]),
    }
  }

  #witness(): Witness {
    return new Witness({ look: () => this.#look(), turn: () => Promise.resolve() })
  }

  /** Everything that there is, as one text. */
  async #everything(): Promise<string> {
    const rows = TABLES.map((table) => `(SELECT json_agg(t) FROM ${this.schema}.${table} AS t)`)
    const { rows: found } = await this.#admin.query(`SELECT json_build_array(${rows.join(', ')})`)
    return JSON.stringify([found, this.#time])
  }

  /** Lets a verb run alone, and tells how many statements it has and whether it does anything. */
  async solo(name: SceneName, lifecycle: Lifecycle, verb: VerbName): Promise<Solo> {
    const scene = await this.#setUp(name, lifecycle)
    const before = await this.#everything()
    const { gate } = this.#side(0)
    void gate.stopAt(Number.POSITIVE_INFINITY)
    await VERBS[verb](this.#caller(scene, this.#witness(), 0))
    return { statements: gate.sent, acts: (await this.#everything()) !== before }
  }

  /**
   * Holds the first verb before its n-th statement, lets the second run until it has ended or waits
   * for a lock, and then lets the first go on. What came of it that is wrong.
   */
  async play(
    name: SceneName,
    lifecycle: Lifecycle,
    [first, second]: readonly [VerbName, VerbName],
    n: number,
  ): Promise<readonly string[]> {
    this.played++
    const scene = await this.#setUp(name, lifecycle)
    const witness = this.#witness()
    const start = await this.#look()
    const { gate } = this.#side(0)
    const held = gate.stopAt(n)
    const one = VERBS[first](this.#caller(scene, witness, 0))
    await Promise.race([held, one])
    const other = VERBS[second](this.#caller(scene, witness, 1))
    await this.untilEndedOrBlocked(other)
    gate.open()
    const ends = await Promise.allSettled([one, other])
    for (const end of ends) if (end.status === 'rejected') throw end.reason
    const { rows: runs } = await this.#admin.query(`SELECT * FROM ${this.schema}.own_runs`)
    const { reader } = this
    const { told } = witness
    return judge({ scene, start, told, times: this.#times, reader, runs, skipsLocked: true })
  }

  /** Waits until what the second side does has ended, or waits for a lock. */
  async untilEndedOrBlocked(verb: Promise<unknown>): Promise<void> {
    let hasEnded = false
    const end = () => {
      hasEnded = true
    }
    verb.then(end, end)
    for (let looks = 0; !hasEnded; looks++) {
      if (looks > LOOKS_MAX) throw new Error('The second caller neither ends nor waits')
      const { rows } = await this.#admin.query(
        `SELECT 1 FROM pg_stat_activity
         WHERE application_name = 'caller 2' AND wait_event_type = 'Lock'`,
      )
      if (rows.length > 0) return
    }
  }
}
