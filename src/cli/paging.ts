/** The paging options of all lists. */
import { type Call, type OptionSpec, textOf, wholeOf } from './spec.ts'

const LIST_DEFAULT = 50
const PAGE_MAX = 1000

export const PAGING_OPTIONS: readonly OptionSpec[] = [
  { flags: '--limit <count>', says: `list at most this many (${LIST_DEFAULT} if absent)` },
  { flags: '--after <cursor>', says: 'continue after the page that printed this cursor' },
]

export function walkOf(call: Call) {
  const limit = wholeOf(call, 'limit', 1) ?? LIST_DEFAULT
  return { limit, size: PAGE_MAX, after: textOf(call, 'after') }
}
