/** Which migrations a database has, compared with those of this release. */
import { createHash } from 'node:crypto'
import type { SchemaStatus } from './contract/store.ts'
import { SchemaDrift, SchemaTooNew } from './errors.ts'

/** The record of a migration that was applied. */
export interface AppliedRow {
  readonly number: number
  readonly checksum: string
  readonly applied_at: number
}

/**
 * Compares records, by number, with the texts of this release. Throws `SchemaTooNew` if there are
 * more of them, and `SchemaDrift` if one of them was made from another text.
 */
export function checkApplied(
  rows: readonly AppliedRow[],
  texts: readonly string[],
): SchemaStatus['applied'] {
  const last = rows[rows.length - 1]?.number ?? 0
  if (last > texts.length) throw new SchemaTooNew(last, texts.length)
  return rows.map(({ number, checksum, applied_at: appliedAt }, i) => {
    const text = texts[i]
    if (text === undefined || number !== i + 1 || checksum !== checksumOf(text)) {
      throw new SchemaDrift(i + 1)
    }
    return { number, appliedAt }
  })
}

/** The checksum that is recorded with a migration. */
export function checksumOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
