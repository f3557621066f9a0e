/** Bugs planted in flows, batches and invokes; see `canaries.ts`. */
import { type Canary, canary, change, core } from './planted.ts'

const verb = (name: string) => `stores/verbs/${name}.js`
const links = 'stores/sqlite/statements/links.js'
const flows = 'stores/sqlite/statements/flows.js'
const rows = 'stores/link-rows.js'
const decider = core('decide-links')

export const FLOWS: readonly Canary[] = [
  canary(
    'a job starts before all that it waits for has ended',
    'P19',
    change(verb('wake'), 'return open === null || failed', 'return true || failed'),
    change(verb('wake'), 'open: open !== null || isOpenBatch', 'open: isOpenBatch'),
  ),
  canary(
    'the end of a job does not reach those that wait for it',
    'P19',
    change(links, 'of changes.ended)', 'of [])'),
  ),
  canary(
    'a redrive does not reach those that wait for the job',
    'P19',
    change(links, 'of changes.revived)', 'of [])'),
  ),
  canary(
    'children go on after their parent has ended',
    'P19',
    change(links, 'of changes.orphaning)', 'of [])'),
  ),
  canary(
    'a failed dependency counts as a success',
    'P19',
    change(rows, '`CASE WHEN need = ', '`CASE WHEN 9 = '),
  ),
  canary(
    'the callbacks of an open batch are released',
    'P19',
    change(verb('wake'), 'open: open !== null || isOpenBatch', 'open: open !== null'),
  ),
  canary(
    'members that are added have no links',
    'P19',
    change(
      verb('flows'),
      'groups.flatMap(({ waiter, part, group })',
      '[].flatMap(({ waiter, part, group })',
    ),
  ),
  canary(
    'an empty batch is never done',
    'P19',
    change(verb('flows'), 'open ? [] : yield* settle(tx, free)', '[]'),
  ),
  canary(
    'the callback for failures runs after success',
    'P19',
    change(decider, 'return isMissed ?', 'return false ?'),
  ),
  canary(
    'an invoke is over while a child works',
    'P19',
    change(verb('invoke'), 'ends.every(({ seq }) => seq !== null)', 'true'),
  ),
  canary(
    'an invoke looks at what its children are now',
    'P19',
    change(
      flows,
      'SELECT awaited AS id, seq FROM pawl_links WHERE awaited IN',
      'SELECT id, iif(outcome IS NULL, NULL, seq) AS seq FROM pawl_jobs WHERE id IN',
    ),
    change(flows, 'AND waiter = ? AND part = 0`', 'AND ? IS NOT NULL`'),
  ),
  canary(
    'a redrive starts a job that waits',
    'P19',
    change(decider, '!STARTING.includes(command.kind)', 'true'),
  ),
]
