/** Reads a list of a store page by page. */
import type { Page } from '../stores/contract/store.ts'

/** Reads one page of a list. */
type AskPage<T> = (page: { limit: number; after?: string }) => Promise<Page<T>>

interface Walk {
  /** The largest number of items; all if absent. */
  readonly limit?: number
  /** Items per page. */
  readonly size: number
  readonly after?: string | undefined
}

interface PageRead<T> extends Pick<Page<T>, 'damaged' | 'unreadable'> {
  readonly items: readonly T[]
  /** The cursor of the next page; undefined at the end of the list. */
  readonly after: string | undefined
  /** Whether the walk's `limit` is reached. */
  readonly isFull: boolean
}

/** A page may be empty although more follow: a store bounds the rows that it examines per page. */
export async function* pagesOf<T>(ask: AskPage<T>, walk: Walk): AsyncGenerator<PageRead<T>> {
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
