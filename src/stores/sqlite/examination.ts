/** A SQLite file, as the doctor sees and mends it. */

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
import type { Connection } from './connect.ts'
import type { Shared } from './context.ts'
import { counters, dossierOf, dossiers, duplicates, scan, storage } from './examine.ts'
import { findDamage } from './isolate.ts'
import { findMachineFaults, restoreMachine } from './machines.ts'
import { keepNote, leaveDuty, mend, notes, recount, takeDuty } from './mend.ts'
import { undeliveredNotices } from './notices.ts'
import { restoreQueue } from './queue-records.ts'
import { drift, restore } from './schema.ts'
import { missingRows } from './seals.ts'
import { returnEffects, strayEffects } from './stray-effects.ts'
import type { Work } from './writer.ts'

/** How the store reads and writes. */
export interface Access {
  read<T>(work: (connection: Connection) => T): Promise<T>
  write<T>(verb: VerbName, work: Work<T>): Promise<T>
}

/** The doctor's way into a file. */
export class SqliteExamination implements Examination {
  readonly #access: Access
  readonly #shared: Shared

  constructor(access: Access, shared: Shared) {
    this.#access = access
    this.#shared = shared
  }

  drift() {
    return this.#access.read(drift)
  }

  scan() {
    return this.#access.read(scan)
  }

  damaged() {
    const { environment } = this.#shared
    return this.#access.read((db) => findDamage(this.#shared, db, environment.clock.now()))
  }

  machineFaults() {
    return this.#access.read((db) => findMachineFaults(db, this.#shared.machines))
  }

  storage() {
    return this.#access.read(storage)
  }

  undeliveredNotices(before: number) {
    return this.#access.read((db) => undeliveredNotices(db, before))
  }

  dossiers(after: Ref | undefined, limit: number) {
    return this.#access.read((db) => dossiers(db, after, limit))
  }

  dossierOf(id: string) {
    return this.#access.read((db) => dossierOf(db, id))
  }

  duplicates(limit: number) {
    return this.#access.read((db) => duplicates(db, limit))
  }

  strayEffects(limit: number) {
    return this.#access.read((db) => strayEffects(db, limit))
  }

  counters() {
    return this.#access.read(counters)
  }

  vanished() {
    return this.#access.read(missingRows)
  }

  mend(
    ref: Ref,
    decide: (dossier: Dossier, now: number) => Mending | undefined,
    by: Surgeon,
  ): Promise<Mending | undefined> {
    return this.#access.write('mend', (db, now) => mend(this.#shared, db, now, ref, decide, by))
  }

  returnEffects(effects: readonly StrayEffect[], by: Surgeon): Promise<void> {
    return this.#access.write('mend', (db, now) => returnEffects(db, now, effects, by))
  }

  recount(): Promise<void> {
    return this.#access.write('recount', recount)
  }

  restoreQueue(queue: string, by: Surgeon): Promise<void> {
    return this.#access.write('restore', (db, now) => restoreQueue(db, now, queue, by))
  }

  restoreMachine(fault: MachineFault): Promise<void> {
    return this.#access.write('restore', (db) => restoreMachine(db, this.#shared.machines, fault))
  }

  restore(object: Drift): Promise<void> {
    return this.#access.write('restore', (db) => restore(db, object))
  }

  note(origin: string, content: string, why: string, by: Surgeon): Promise<void> {
    return this.#access.write('note', (db, now) => keepNote(db, now, origin, content, why, by))
  }

  notes(origin: string): Promise<string[]> {
    return this.#access.read((db) => notes(db, origin))
  }

  takeDuty(name: string, holder: string, leaseMs: number): Promise<Duty | undefined> {
    return this.#access.write('takeDuty', (db, now) => takeDuty(db, now, name, holder, leaseMs))
  }

  leaveDuty(name: string, holder: string, place: string | undefined): Promise<boolean> {
    return this.#access.write('leaveDuty', (db) => leaveDuty(db, name, holder, place))
  }
}
