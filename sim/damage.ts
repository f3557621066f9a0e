/**
 * Single fields of jobs that are damaged while workers live: past the store, but not past its
 * constraints. It must stop no other work: every other job comes to its end while the damaged
 * ones wait. Then the doctor repairs them, and they come to theirs.
 */
import { Doctor } from 'pawl/doctor'
import type { Database, Store } from 'pawl/sqlite'
import type { Faults } from './faults.ts'
import { EVERY_LIFECYCLE } from './parcels.ts'

/** Values that no job has, each in a column that the constraints leave open. */
const FIELDS = [
  "tags = 'oops'",
  "tags = '5'",
  "policy = '{'",
  "error = 'x'",
  "state = 'bogus'",
  'attempt = 2000000000',
  'failures = 9007199254740993',
  'created_at = -1',
]

const REPAIR = { operator: 'ada', reason: 'it was damaged while others worked' }

/** Damages jobs, and remembers whether it did. */
export class Vandal {
  isGuilty = false
  readonly #database: Database
  readonly #faults: Faults

  constructor(database: Database, faults: Faults) {
    this.#database = database
    this.#faults = faults
  }

  /** Damages one field of one job, if the job has not ended and no process is writing. */
  async damage(id: string): Promise<void> {
    const field = FIELDS[this.#faults.between(0, FIELDS.length)]
    try {
      const sql = `UPDATE pawl_jobs SET ${field} WHERE id = ? AND lane IN (1, 2, 3)`
      const { changes } = this.#database.prepare(sql).run(id)
      if (Number(changes) > 0) this.isGuilty = true
    } catch {
      // Somebody writes just now: nothing is damaged.
    }
  }
}

/** What a person does about it in the end. */
export async function repairAll(
  store: Store,
  environment: ConstructorParameters<typeof Doctor>[0]['environment'],
): Promise<void> {
  await new Doctor({ store, environment, lifecycles: EVERY_LIFECYCLE }).repair(REPAIR)
}
