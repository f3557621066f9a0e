/** Bugs planted in priorities that age; see `canaries.ts`. */
import { type Canary, canary, change, sqlite } from './planted.ts'

export const ORDER: readonly Canary[] = [
  canary(
    'a claim does not know which jobs are ahead',
    'P15',
    change(
      sqlite('claim'),
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of the statement.
      'ORDER BY priority, ${orderAt()}, rid LIMIT ?4',
      'ORDER BY priority, run_at, rid LIMIT ?4',
    ),
  ),
  canary(
    'a job that is ahead overtakes every older one, as a number does',
    'P15',
    change(
      sqlite('claim'),
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of the statement.
      'ORDER BY priority, ${orderAt()}, rid LIMIT ?4',
      'ORDER BY priority, ahead_ms IS NULL, rid LIMIT ?4',
    ),
  ),
  canary(
    'the row of a job does not keep by how much it is ahead',
    'P9',
    change('stores/columns.js', 'return job.aheadMs === 0 ? null : job.aheadMs', 'return null'),
  ),
]
