/** The doctor's access to a store, the same on both databases. */

import type {
  CounterDrift,
  Drift,
  Duplicate,
  Duty,
  Examination,
  Mending,
  RepairAuthor,
  Scan,
  StoredJob,
  StrayEffect,
} from './contract/examination.ts'
import type { Ref } from './contract/store.ts'
import type { JobDamaged } from './errors.ts'
import type { MachineFault } from './machines.ts'
import type { UndeliveredNotices } from './notices.ts'
import type { VerbName } from './verb-table.ts'
import { findDamage } from './verbs/isolate.ts'
import { findMachineFaults, restoreMachine } from './verbs/machines.ts'
import { mend } from './verbs/mend.ts'
import type { Step, Tx } from './verbs/operations.ts'
import { restoreQueue } from './verbs/queues.ts'
import { returnEffects } from './verbs/stray-effects.ts'

/** What a verb reads: every row of a table, or some rows. */
export type Reading = 'every-row' | 'some-rows'

/** How verbs of the doctor are run. A verb that looks sees the store as of one moment. */
export interface ExaminationAccess {
  look<T>(verb: (tx: Tx) => Step<T>, reading?: Reading): Promise<T>
  perform<T>(name: VerbName, verb: (tx: Tx) => Step<T>, reading?: Reading): Promise<T>
  /** The schema is compared with the catalogue of each database, and restored by its own DDL. */
  drift(): Promise<Drift[]>
  restore(object: Drift): Promise<void>
}

/** The doctor's access to a store. */
export class ExaminationSide implements Examination {
  readonly #access: ExaminationAccess

  constructor(access: ExaminationAccess) {
    this.#access = access
  }

  drift(): Promise<Drift[]> {
    return this.#access.drift()
  }

  scan(): Promise<Scan> {
    return this.#access.look((tx) => tx.scan(), 'every-row')
  }

  damaged(): Promise<JobDamaged[]> {
    return this.#access.look(findDamage)
  }

  machineFaults(): Promise<MachineFault[]> {
    return this.#access.look(findMachineFaults)
  }

  storage(): Promise<string[]> {
    return this.#access.look((tx) => tx.storage())
  }

  undeliveredNotices(before: number): Promise<UndeliveredNotices> {
    return this.#access.look((tx) => tx.undeliveredNotices(before))
  }

  storedJobs(after: Ref | undefined, limit: number): Promise<StoredJob[]> {
    return this.#access.look((tx) => tx.storedJobs(after, limit))
  }

  storedJobOf(id: string): Promise<StoredJob | undefined> {
    return this.#access.look((tx) => tx.storedJobOf(id))
  }

  duplicates(limit: number): Promise<Duplicate[]> {
    return this.#access.look((tx) => tx.duplicates(limit), 'every-row')
  }

  strayEffects(limit: number): Promise<StrayEffect[]> {
    return this.#access.look((tx) => tx.strayEffects(limit), 'every-row')
  }

  counters(): Promise<CounterDrift[]> {
    return this.#access.look((tx) => tx.counters(), 'every-row')
  }

  vanished(): Promise<{ readonly jobs: number; readonly facts: number } | undefined> {
    return this.#access.look((tx) => tx.missingRows())
  }

  mend(
    ref: Ref,
    decide: (stored: StoredJob, now: number) => Mending | undefined,
    by: RepairAuthor,
  ): Promise<Mending | undefined> {
    return this.#access.perform('mend', (tx) => mend(tx, ref, decide, by))
  }

  returnEffects(effects: readonly StrayEffect[], by: RepairAuthor): Promise<void> {
    return this.#access.perform('mend', (tx) => returnEffects(tx, effects, by))
  }

  recount(): Promise<void> {
    return this.#access.perform('recount', (tx) => tx.recount(), 'every-row')
  }

  restoreQueue(queue: string, by: RepairAuthor): Promise<void> {
    return this.#access.perform('restore', (tx) => restoreQueue(tx, queue, by))
  }

  restoreMachine(fault: MachineFault): Promise<void> {
    return this.#access.perform('restore', (tx) => restoreMachine(tx, fault))
  }

  restore(object: Drift): Promise<void> {
    return this.#access.restore(object)
  }

  note(origin: string, content: string, why: string, by: RepairAuthor): Promise<void> {
    return this.#access.perform('note', (tx) => tx.keepNote(origin, content, why, by))
  }

  notes(origin: string): Promise<string[]> {
    return this.#access.look((tx) => tx.notes(origin))
  }

  takeDuty(name: string, holder: string, leaseMs: number): Promise<Duty | undefined> {
    return this.#access.perform('takeDuty', (tx) => tx.takeDuty(name, holder, leaseMs))
  }

  leaveDuty(name: string, holder: string, cursor: string | undefined): Promise<boolean> {
    return this.#access.perform('leaveDuty', (tx) => tx.leaveDuty(name, holder, cursor))
  }
}
