/** What a resume of a run would do: how far it rewinds, which items run again, and why. */
import { call } from '../api/client.ts'
import { useView } from '../api/view.ts'
import { count } from '../format.ts'
import { Failure, Name } from '../ui/parts.tsx'
import { State } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'
import { More } from './more.tsx'

const ROWS_MAX = 500

interface Explained {
  readonly state: string
  readonly hasEnded: boolean
  readonly rewinds: readonly Rewind[]
  readonly continuesIn: string
  readonly changedInputs: readonly string[]
  readonly refusal: { readonly message: string; readonly hint: string } | null
  readonly items: readonly ExplainedItem[]
}

interface ExplainedItem {
  readonly key: string
  readonly verdict: 'skip' | 'run' | 'check'
  readonly because: string
  readonly artifact: string | null
}

interface Rewind {
  readonly from: string
  readonly to: string
  readonly reason: 'resume' | 'stale'
}

export type ItemVerdicts = ReadonlyMap<string, Pick<ExplainedItem, 'verdict' | 'because'>>

/** By the key of the item; empty if nothing is explained. */
export function verdictsOf(explained: Explained | undefined): ItemVerdicts {
  return new Map((explained?.items ?? []).map((item) => [item.key, item]))
}

/** What a resume would do, in one sentence. */
export function resumeText(explained: Explained): string {
  const { hasEnded, items, continuesIn, changedInputs, rewinds } = explained
  if (hasEnded)
    return 'The run has ended: a resume changes nothing. Fork it to go on from a past event.'
  const of = (verdict: string) => items.filter((item) => item.verdict === verdict).length
  const changed = changedInputs.length > 0 ? `${count(changedInputs.length)} inputs changed. ` : ''
  const parts = [
    `${count(of('run'))} items run again`,
    `${count(of('check'))} run if what they read differs`,
    `${count(of('skip'))} are kept`,
  ]
  const back = rewinds.map(
    ({ from, to, reason }) => `It rewinds from ${from} to ${to}${WHY[reason]}`,
  )
  return [changed, ...back, `It continues in ${continuesIn}: ${parts.join(', ')}.`].join('')
}

const WHY = {
  resume: ', because a process was stopped there. ',
  stale: ', because earlier work is stale. ',
} as const

export async function explainResume(id: string, signal?: AbortSignal): Promise<Explained> {
  const answer = await call('explainRun', { params: { id }, query: {} }, signal)
  return answer as unknown as Explained
}

export const VERDICTS = {
  run: ['running', 'runs again'],
  check: ['waiting', 'runs if it differs'],
  skip: ['succeeded', 'is kept'],
} as const

export function Resume({ id, seq }: { id: string; seq: number }) {
  const { data, error, reload } = useView(`${id} ${seq} resume`, (signal) =>
    explainResume(id, signal),
  )
  if (data === undefined) {
    return <Failure error={error} retry={reload} />
  }
  const rows = [...data.items].sort((a, b) => ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict))
  return (
    <div class="stack">
      <p>{resumeText(data)}</p>
      {data.refusal && (
        <p class="notice bad">
          <Name text={`${data.refusal.message}. ${data.refusal.hint}`} />
        </p>
      )}
      {rows.length > 0 && (
        <Table
          label="What a resume would do"
          rows={rows.slice(0, ROWS_MAX)}
          keyOf={({ key }) => key}
          columns={[
            { title: 'Item', cell: ({ key }) => <Name text={key} clip /> },
            {
              title: 'Resume',
              tight: true,
              cell: ({ verdict }) => (
                <State tone={VERDICTS[verdict][0]} word={VERDICTS[verdict][1]} />
              ),
            },
            { title: 'Because', tight: true, cell: ({ because }) => because.replaceAll('_', ' ') },
            { title: 'Of', cell: ({ artifact }) => <Name text={artifact ?? ''} clip /> },
          ]}
        />
      )}
      <More all={rows.length} shown={ROWS_MAX} line={`pawl run explain ${id}`} />
    </div>
  )
}

const ORDER: readonly string[] = ['run', 'check', 'skip']
