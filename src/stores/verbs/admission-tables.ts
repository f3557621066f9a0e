/** The rows of admission, behind the contract of `../contract/admissions.ts`. */
import type {
  AdmissionName,
  AdmissionRow,
  Admissions,
  Tended,
  Waiting,
} from '../contract/admissions.ts'
import { checkLimit } from '../contract/requests.ts'
import { tend } from './admit.ts'
import type { TableAccess } from './run-tables.ts'

export class StoredAdmissions implements Admissions {
  readonly #access: TableAccess

  constructor(access: TableAccess) {
    this.#access = access
  }

  async tend(limit: number): Promise<Tended> {
    checkLimit(limit)
    // Most stores have no such rows, and a look does not take the write lock.
    const isDue = await this.#access.look(function* (tx) {
      return yield* tx.hasDueAdmissions()
    })
    if (!isDue) return { released: 0, removed: 0, seen: 0 }
    return this.#access.change('tend', (tx) => tend(tx, limit))
  }

  waiting(jobId: string): Promise<Waiting | undefined> {
    return this.#access.look(function* (tx) {
      const row = yield* tx.admissionOfNext(jobId)
      if (row === undefined || row.job === null) return undefined
      const { type, key, job } = row
      return { type, key, job }
    })
  }

  list(after: AdmissionName | undefined, limit: number): Promise<AdmissionRow[]> {
    return this.#access.look(function* (tx) {
      return [...(yield* tx.admissionsAfter(after, limit))]
    })
  }
}
