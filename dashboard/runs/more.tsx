import { count } from '../format.ts'

/** Says how many rows are not shown. */
export function More({ all, shown, line }: { all: number; shown: number; line: string }) {
  if (all <= shown) return null
  return (
    <p class="small muted">
      {count(shown)} of {count(all)} are shown. All of them: <code>{line}</code>
    </p>
  )
}
