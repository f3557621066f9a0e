/** The options by which a list is cut to what is wanted, the same for everything that is listed. */
import { type Call, type OptionSpec, textOf, wholeOf } from './spec.ts'

const LIST_DEFAULT = 50
const PAGE_MAX = 1000

/** How many, and from where. */
export const PAGING_OPTIONS: readonly OptionSpec[] = [
  { flags: '--limit <count>', says: `at most so many (${LIST_DEFAULT} if absent)` },
  { flags: '--after <place>', says: 'go on after a page that ended there' },
]

/** The walk through a list that was asked for. */
export function walkOf(call: Call) {
  const limit = wholeOf(call, 'limit', 1) ?? LIST_DEFAULT
  return { limit, size: PAGE_MAX, after: textOf(call, 'after') }
}
