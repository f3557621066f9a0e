/** Walks a list of a store page by page, to its end or to a number of items. */
import type { Page } from '../stores/store.ts'

/** Asks a store for one page of a list. */
type AskPage<T> = (page: { limit: number; after?: string }) => Promise<Page<T>>

/** How far to walk, and from where. */
interface Walk {
  /** How many items at most; all of them if absent. */
  readonly limit?: number
  /** How many at a time. */
  readonly size: number
  readonly after?: string | undefined
}

/** One page on the way. */
interface Passed<T> extends Pick<Page<T>, 'damaged' | 'unreadable'> {
  readonly items: readonly T[]
  /** Where to go on; nothing at the end of the list. */
  readonly after: string | undefined
  /** As many items as were asked for have been passed. */
  readonly isFull: boolean
}

/** The pages of a list; one may be empty, where the budget of a look ended before a match. */
export async function* pagesOf<T>(ask: AskPage<T>, walk: Walk): AsyncGenerator<Passed<T>> {
  let left = walk.limit ?? Number.MAX_SAFE_INTEGER
  let { after } = walk
  do {
    const limit = Math.min(walk.size, left)
    const { items, next, damaged, unreadable } = await ask({
      limit,
      ...(after !== undefined && { after }),
    })
    left = Math.max(0, left - items.length - (damaged?.length ?? 0))
    after = next
    const more = { ...(damaged && { damaged }), ...(unreadable && { unreadable }) }
    yield { items, ...more, after, isFull: left === 0 }
  } while (after !== undefined && left > 0)
}
