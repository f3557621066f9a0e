/** The numbers in the navigation: one small request every few seconds, shared by all pages. */
import { effect, signal } from '@preact/signals'
import { type Answer, call } from './api/client.ts'
import { mayRefresh } from './api/live.ts'
import { caller, noteStoreTime } from './api/session.ts'
import { rounded } from './format.ts'

export interface Badge {
  readonly text: string
  /** Needs a person. */
  readonly isHot?: boolean
}

const EVERY_MS = 5000

export const stats = signal<Answer<'readStats'> | undefined>(undefined)
/** Numbers beside the names of pages, by path. A page may set its own. */
export const badges = signal<Readonly<Record<string, Badge>>>({})

export function setBadge(path: string, badge: Badge | undefined): void {
  const { [path]: _, ...others } = badges.value
  badges.value = badge === undefined ? others : { ...others, [path]: badge }
}

let isBusy = false

async function load(): Promise<void> {
  if (isBusy) return
  isBusy = true
  try {
    const found = await call('readStats', {})
    noteStoreTime(found.now)
    stats.value = found
    const all = Object.values(found.lanes).reduce((sum, one) => sum + one, 0)
    const open = all - found.lanes.ended
    badges.value = {
      ...badges.value,
      '/jobs': { text: rounded(all) },
      '/queues': { text: rounded(found.queues) },
      '/workers': { text: rounded(found.workers), isHot: found.workers === 0 && open > 0 },
    }
  } catch {
    // The footer says that there is no connection.
  } finally {
    isBusy = false
  }
}

export function startNumbers(): void {
  setInterval(() => caller.value !== undefined && mayRefresh() && void load(), EVERY_MS)
  effect(() => {
    if (caller.value !== undefined) void load()
  })
}
