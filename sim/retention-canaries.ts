/** Bugs planted in retention; see `canaries.ts`. */
import { type Canary, canary, change, sqlite } from './planted.ts'

const tables = 'stores/verbs/retention-tables.js'
const statements = sqlite('statements/retention')

export const RETENTION: readonly Canary[] = [
  canary(
    'retention keeps no key of what it removes',
    'P12',
    change(tables, 'if (row.key === null || keepUntil <= tx.now)', 'if (true)'),
  ),
  canary(
    'retention frees a key when its job has ended',
    'P12',
    change(statements, 'WHERE keep_until <= ? ORDER BY', 'WHERE ended_at <= ? ORDER BY'),
  ),
  canary(
    'retention removes what has just ended',
    'P8',
    change(
      tables,
      'tx.endedAfter(positionIn(after), request.endedBefore, limit)',
      'tx.endedAfter(positionIn(after), tx.now + 1, limit)',
    ),
    change(tables, '{ endedBefore, archive, keysMs, by }', '{ archive, keysMs, by }'),
    change(
      tables,
      'const removing = { endedBefore,',
      'const removing = { endedBefore: tx.now + 1,',
    ),
  ),
]
