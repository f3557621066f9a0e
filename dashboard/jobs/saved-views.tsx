/** Filters that a person keeps under a name, on this machine. */
import { signal } from '@preact/signals'
import { hrefOf } from '../router.ts'
import { toast } from '../ui/dialogs.tsx'
import type { JobFilter } from './act.tsx'

interface SavedView {
  readonly name: string
  readonly filter: JobFilter
}

const KEY = 'pawl.views'
const VIEWS_MAX = 20

const BUILT_IN: readonly SavedView[] = [
  { name: 'All', filter: {} },
  { name: 'Needs a person', filter: { lane: 'parked' } },
  { name: 'Stalled', filter: { stalled: 'yes' } },
  { name: 'Failed', filter: { outcome: 'failed' } },
  { name: 'Running', filter: { lane: 'held' } },
  { name: 'Waiting', filter: { lane: 'waiting' } },
]

const saved = signal<readonly SavedView[]>(read())

function read(): SavedView[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]')
    return Array.isArray(stored) ? stored.slice(0, VIEWS_MAX) : []
  } catch {
    return []
  }
}

function write(views: readonly SavedView[]): void {
  saved.value = views.slice(-VIEWS_MAX)
  localStorage.setItem(KEY, JSON.stringify(saved.value))
}

export function SavedViews({ filter }: { filter: JobFilter }) {
  const here = JSON.stringify(filter)
  const all = [...BUILT_IN, ...saved.value]
  const known = all.some((view) => JSON.stringify(view.filter) === here)
  const isOwn = saved.value.some((view) => JSON.stringify(view.filter) === here)
  const save = () => {
    const name = Object.values(filter).join(' ').slice(0, 40)
    write([...saved.value, { name, filter }])
    toast(<span>Saved on this machine as “{name}”.</span>)
  }
  return (
    <nav class="row" aria-label="Saved views">
      {all.map((view) => (
        <a
          key={view.name}
          class="chip flat plain"
          href={hrefOf('/jobs', view.filter)}
          aria-current={JSON.stringify(view.filter) === here ? 'true' : undefined}
        >
          <bdi>{view.name}</bdi>
        </a>
      ))}
      {!known && (
        <button type="button" class="copy" onClick={save}>
          Save this view
        </button>
      )}
      {isOwn && (
        <button
          type="button"
          class="copy"
          onClick={() => write(saved.value.filter((view) => JSON.stringify(view.filter) !== here))}
        >
          Forget this view
        </button>
      )}
    </nav>
  )
}
