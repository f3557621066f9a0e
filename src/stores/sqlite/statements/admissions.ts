/** The rows of admission. */
import type { Accepted } from '../../accept.ts'
import type { AdmissionName, AdmissionRow } from '../../contract/admissions.ts'
import { type LockedRow, toLocked } from '../../verbs/reading.ts'
import { findTaken, insertSpecial } from '../enqueue.ts'
import { Room } from '../queues.ts'
import type { At } from './at.ts'
import { findRemoved } from './retention.ts'

const SELECT = 'SELECT * FROM pawl_admissions WHERE type = ? AND kind = ? AND key = ?'

const SAVE = `
  INSERT INTO pawl_admissions (type, kind, key, job, next, first_at, counts, look_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (type, kind, key) DO UPDATE SET job = excluded.job, next = excluded.next,
    first_at = excluded.first_at, counts = excluded.counts, look_at = excluded.look_at`

const SELECT_DUE = `
  SELECT * FROM pawl_admissions WHERE look_at <= ? ORDER BY look_at, type, kind, key LIMIT ?`

const SELECT_AFTER = `
  SELECT * FROM pawl_admissions WHERE (type, kind, key) > (?, ?, ?)
  ORDER BY type, kind, key LIMIT ?`

const SELECT_JOB = 'SELECT * FROM pawl_jobs WHERE id = ?'

export const ADMISSIONS = {
  withTakenKeys: ({ connection, now }: At, jobs: readonly Accepted[]) =>
    new Set(
      jobs.filter(({ job: { type, key } }) => {
        if (key === null) return false
        const isTaken = findTaken(connection, type, key) !== undefined
        return isTaken || findRemoved(connection, type, key, now) !== undefined
      }),
    ),
  /** The write lock of the transaction protects rows that are missing as well. */
  lockAdmissions: ({ connection, now }: At, names: readonly AdmissionName[]) =>
    names.map(({ type, kind, key }) => {
      const row = connection.get<AdmissionRow>(SELECT, type, kind, key)
      return row ?? { type, kind, key, ...EMPTY, look_at: now }
    }),
  saveAdmissions({ connection }: At, rows: readonly AdmissionRow[]) {
    for (const { type, kind, key, job, next, first_at, counts, look_at } of rows) {
      connection.run(SAVE, type, kind, key, job, next, first_at, counts, look_at)
    }
  },
  removeAdmissions({ connection }: At, names: readonly AdmissionName[]) {
    for (const { type, kind, key } of names) connection.run(REMOVE, type, kind, key)
  },
  peekJobs({ connection, machines }: At, ids: readonly string[]) {
    const rows = ids.flatMap((id) => {
      const row = connection.get<LockedRow & { readonly rid: number }>(SELECT_JOB, id)
      return row === undefined ? [] : { row, ref: row.rid }
    })
    return toLocked(machines, rows).reads
  },
  addJob: (at: At, job: Accepted) =>
    insertSpecial(at, at.connection, at.now, job, new Room(at.connection)),
  lockDueAdmissions: ({ connection, now }: At, limit: number) =>
    connection.all<AdmissionRow>(SELECT_DUE, now, limit),
  hasDueAdmissions: ({ connection, now }: At) =>
    connection.get(`SELECT 1 FROM pawl_admissions WHERE look_at <= ? LIMIT 1`, now) !== undefined,
  admissionsAfter: ({ connection }: At, after: AdmissionName | undefined, limit: number) => {
    const { type, kind, key } = after ?? { type: '', kind: 0, key: '' }
    return connection.all<AdmissionRow>(SELECT_AFTER, type, kind, key, limit)
  },
  admissionOfNext: ({ connection }: At, jobId: string) =>
    connection.get<AdmissionRow>('SELECT * FROM pawl_admissions WHERE next = ?', jobId),
}

const EMPTY = { job: null, next: null, first_at: null, counts: null } as const
const REMOVE = 'DELETE FROM pawl_admissions WHERE type = ? AND kind = ? AND key = ?'
