/** A schema of PostgreSQL, as the doctor sees and mends it. */

import type {
  Dossier,
  Drift,
  Duty,
  Examination,
  Mending,
  StrayEffect,
  Surgeon,
} from '../examination.ts'
import type { MachineFault } from '../machines.ts'
import type { Ref } from '../store.ts'
import type { VerbName } from '../verb-table.ts'
import { CATALOGUE_SETTINGS } from './catalogue.ts'
import type { OwnSession } from './connect.ts'
import type { Shared } from './context.ts'
import { counters, dossierOf, dossiers, duplicates, scan } from './examine.ts'
import { findDamage } from './isolate.ts'
import { findMachineFaults, restoreMachine } from './machines.ts'
import { keepNote, leaveDuty, mend, notes, recount, takeDuty } from './mend.ts'
import { undeliveredNotices } from './notices.ts'
import { restoreQueue } from './queue-records.ts'
import { replication } from './replication.ts'
import { drift, restore } from './schema.ts'
import { returnEffects, strayEffects } from './stray-effects.ts'

/** How the store reads and writes. */
export interface Access {
  now(): number
  look<T>(settings: string, work: (session: OwnSession) => Promise<T>): Promise<T>
  change<T>(verb: VerbName, work: (session: OwnSession, now: number) => Promise<T>): Promise<T>
}

/** All statements of a transaction see the same moment. */
const ONE_MOMENT = 'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY'
/** Whoever reads every row does it in the order of the table. */
const EVERY_ROW = `${ONE_MOMENT}; SET LOCAL enable_seqscan = on`
const EVERY_ROW_MS = 600_000

/** The doctor's way into a schema. */
export class PostgresExamination implements Examination {
  readonly #access: Access
  readonly #shared: Shared
  readonly #schema: string

  constructor(access: Access, shared: Shared, schema: string) {
    this.#access = access
    this.#shared = shared
    this.#schema = schema
  }

  drift() {
    return this.#access.look(CATALOGUE_SETTINGS, (session) => drift(session, this.#schema))
  }

  scan() {
    return this.#readEveryRow(scan)
  }

  damaged() {
    return this.#access.look(ONE_MOMENT, (session) =>
      findDamage(this.#shared, session, this.#access.now()),
    )
  }

  machineFaults() {
    return this.#access.look(ONE_MOMENT, (session) =>
      findMachineFaults(session, this.#shared.machines),
    )
  }

  /** PostgreSQL has no such check: its own tools read the files, and as another user. */
  async storage(): Promise<string[]> {
    return []
  }

  undeliveredNotices(before: number) {
    return this.#access.look(ONE_MOMENT, (session) => undeliveredNotices(session, before))
  }

  replication() {
    return this.#access.look(ONE_MOMENT, replication)
  }

  /** Numbers are given out also by transactions that are rolled back: only seals can tell. */
  async vanished(): Promise<undefined> {}

  dossiers(after: Ref | undefined, limit: number) {
    return this.#access.look(ONE_MOMENT, (session) => dossiers(session, after, limit))
  }

  dossierOf(id: string) {
    return this.#access.look(ONE_MOMENT, (session) => dossierOf(session, id))
  }

  duplicates(limit: number) {
    return this.#readEveryRow((session) => duplicates(session, limit))
  }

  strayEffects(limit: number) {
    return this.#readEveryRow((session) => strayEffects(session, limit))
  }

  counters() {
    return this.#readEveryRow(counters)
  }

  #readEveryRow<T>(work: (session: OwnSession) => Promise<T>): Promise<T> {
    return this.#access.look(EVERY_ROW, async (session) => {
      await session.takeTime(EVERY_ROW_MS)
      return work(session)
    })
  }

  mend(
    ref: Ref,
    decide: (dossier: Dossier, now: number) => Mending | undefined,
    by: Surgeon,
  ): Promise<Mending | undefined> {
    const context = { shared: this.#shared, schema: this.#schema }
    return this.#access.change('mend', (session, now) =>
      mend({ ...context, session, now, ref, decide, by }),
    )
  }

  returnEffects(effects: readonly StrayEffect[], by: Surgeon): Promise<void> {
    return this.#access.change('mend', (session, now) => returnEffects(session, now, effects, by))
  }

  recount(): Promise<void> {
    return this.#access.change('recount', async (session) => {
      await session.run('SET LOCAL enable_seqscan = on')
      await session.takeTime(EVERY_ROW_MS)
      await recount(session, this.#schema)
    })
  }

  restoreQueue(queue: string, by: Surgeon): Promise<void> {
    return this.#access.change('restore', (session, now) => restoreQueue(session, now, queue, by))
  }

  restoreMachine(fault: MachineFault): Promise<void> {
    return this.#access.change('restore', (session) =>
      restoreMachine(session, this.#shared.machines, fault),
    )
  }

  restore(object: Drift): Promise<void> {
    return this.#access.change('restore', (session) => restore(session, this.#schema, object))
  }

  note(origin: string, content: string, why: string, by: Surgeon): Promise<void> {
    return this.#access.change('note', (session, now) =>
      keepNote(session, now, origin, content, why, by),
    )
  }

  notes(origin: string): Promise<string[]> {
    return this.#access.look(ONE_MOMENT, (session) => notes(session, origin))
  }

  takeDuty(name: string, holder: string, leaseMs: number): Promise<Duty | undefined> {
    return this.#access.change('takeDuty', (session, now) =>
      takeDuty(session, now, name, holder, leaseMs),
    )
  }

  leaveDuty(name: string, holder: string, place: string | undefined): Promise<boolean> {
    return this.#access.change('leaveDuty', (session) => leaveDuty(session, name, holder, place))
  }
}
