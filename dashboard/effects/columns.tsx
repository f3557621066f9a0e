/** Effects in tables: on the page of their job, and on the page of all effects. */
import type { Answer } from '../api/client.ts'
import { count } from '../format.ts'
import { Copy, Name } from '../ui/parts.tsx'
import { State } from '../ui/state.tsx'
import type { Column } from '../ui/table.tsx'

export type Effect = Answer<'listEffects'>['items'][number]

const TONES = { pending: 'ready', delivered: 'succeeded', parked: 'parked' } as const

export const effectState: Column<Effect> = {
  title: 'State',
  tight: true,
  cell: ({ state, claimed = false }) => (
    <State
      tone={claimed ? 'running' : (TONES[state as keyof typeof TONES] ?? 'idle')}
      word={claimed ? 'being delivered' : state}
    />
  ),
}

/** What is known of the deliveries, and what was to be delivered. */
export const effectColumns: readonly Column<Effect>[] = [
  { title: 'Tries', number: true, cell: ({ tries }) => count(tries) },
  { title: 'Error', cell: ({ error: why = '' }) => <Name text={why} clip /> },
  {
    title: 'Payload',
    wide: true,
    cell: ({ payload }) => <code class="clip">{payload.text}</code>,
  },
  {
    title: 'Key',
    wide: true,
    cell: ({ key }) => (
      <span class="mono muted nowrap">
        <Name text={key} clip /> <Copy text={key} />
      </span>
    ),
  },
]
