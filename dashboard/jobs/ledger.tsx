/** The ledger of a job: each fact, who caused it and why. Facts after the chosen one are pale. */
import type { Fact } from '../../src/core/job/facts.ts'
import { clock, exact, span } from '../format.ts'
import { Name } from '../ui/parts.tsx'
import { type Column, Table } from '../ui/table.tsx'
import type { JobData, Moment } from './load.ts'

export function whoOf({ actor, operator, execution }: Fact): string {
  return operator ?? (actor === 'worker' ? (execution?.worker ?? actor) : actor)
}

export function whyOf({
  note,
  reason,
  error,
  step,
  execution,
  timing,
  spends,
  trigger,
  effects,
}: Fact): string {
  const parts = [
    trigger === 'claim' && execution && `attempt ${execution.attempt}`,
    step && `step ${step.name}`,
    reason,
    note,
    error?.message,
    spends && `spends a ${spends}`,
    effects !== undefined && `${effects} effects`,
    timing && `waited ${span(timing.queueMs)}, took ${span(timing.durationMs)}`,
  ]
  return parts.filter(Boolean).join(' · ')
}

export function moveOf({ from, via = [], to }: Pick<Fact, 'from' | 'via' | 'to'>): string {
  return from === to && via.length === 0 ? to : [from ?? '', ...via, to].filter(Boolean).join(' → ')
}

const COLUMNS: readonly Column<Fact>[] = [
  { title: '#', number: true, tight: true, cell: ({ seq }) => seq },
  {
    title: 'When',
    tight: true,
    cell: ({ at }) => (
      <span class="mono" title={exact(at)}>
        {clock(at)}
      </span>
    ),
  },
  { title: 'What', tight: true, cell: ({ trigger }) => trigger },
  { title: 'From → to', tight: true, cell: (fact) => moveOf(fact) },
  { title: 'Who', cell: (fact) => <Name text={whoOf(fact)} clip /> },
  {
    title: 'Why',
    cell: (fact) => (
      <span class="muted">
        <Name text={whyOf(fact)} />
      </span>
    ),
  },
]

export function Ledger({
  data,
  moment,
  travel,
}: {
  data: JobData
  moment: Moment
  travel: (to: number | undefined) => void
}) {
  const columns: Column<Fact>[] = [
    {
      ...(COLUMNS[0] as Column<Fact>),
      cell: ({ seq }) => (
        <button
          type="button"
          class="seq"
          onClick={() => travel(seq)}
          aria-label={`Go to fact ${seq}`}
        >
          {seq}
        </button>
      ),
    },
    ...COLUMNS.slice(1),
  ]
  const classOf = ({ seq }: Fact) =>
    seq > moment.at ? 'later' : seq === moment.at && !moment.isNow ? 'chosen' : undefined
  return (
    <div role="tabpanel" aria-labelledby="tab-ledger">
      <Table
        label="Ledger"
        columns={columns}
        rows={data.facts}
        keyOf={({ seq }) => String(seq)}
        classOf={classOf}
      />
    </div>
  )
}
