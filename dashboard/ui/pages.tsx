import { count } from '../format.ts'
import { setQuery } from '../router.ts'

/** The way through a list whose cursor is in the address. */
export function Pages({
  after,
  next,
  shown,
}: {
  after: string | undefined
  next: string | null
  shown: number
}) {
  if (after === undefined && next === null) return null
  return (
    <nav class="row" aria-label="Pages of the list">
      {after !== undefined && (
        <button type="button" class="button" onClick={() => setQuery({ after: undefined })}>
          Newest
        </button>
      )}
      <span class="muted small">{count(shown)} shown, newest first</span>
      {next !== null && (
        <button type="button" class="button" onClick={() => setQuery({ after: next })}>
          Older
        </button>
      )}
    </nav>
  )
}
