/** Effects of all jobs: what was committed and could not be delivered, and what is due. */
import { useState } from 'preact/hooks'
import { call } from '../api/client.ts'
import { canOperate } from '../api/session.ts'
import { ON_FACTS, useView } from '../api/view.ts'
import { askToDeliver, type EffectSelection, effectWords } from '../effects/act.tsx'
import { type Effect, effectColumns, effectState } from '../effects/columns.tsx'
import { hrefOf, jobHref, place } from '../router.ts'
import { FilterBar, type FilterField, filterIn } from '../ui/filters.tsx'
import { Pages } from '../ui/pages.tsx'
import { Cli, Empty, Failure, Name, Panel, Time, Top } from '../ui/parts.tsx'
import { type Column, Table } from '../ui/table.tsx'

const FIELDS: readonly FilterField[] = [
  { name: 'type', says: 'of jobs of this type' },
  { name: 'jobId', says: 'of this job' },
]

/** Parked ones first: they wait for a person. */
const VIEWS = ['parked', 'pending', 'delivered', 'all'] as const

const TITLES = { parked: 'Parked', pending: 'Pending', delivered: 'Delivered', all: 'All' } as const
const PAGE = 50
/** The most that one request changes. */
const BULK_MAX = 10_000

function stateIn(): (typeof VIEWS)[number] {
  const given = place.value.query.get('state')
  return VIEWS.find((view) => view === given) ?? 'parked'
}

export function EffectsPage() {
  const state = stateIn()
  const filter = { ...(state !== 'all' && { state }), ...filterIn(FIELDS) }
  const after = place.value.query.get('after') ?? undefined
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const { data, error, reload } = useView(
    JSON.stringify([filter, after]),
    (signal) => call('listEffects', { query: { ...filter, after, limit: PAGE } }, signal),
    // Later pages do not change under the reader.
    after === undefined ? ON_FACTS : {},
  )
  const effects = data?.items ?? []
  const selection: EffectSelection =
    chosen.size > 0 ? { keys: [...chosen] } : { filter, limit: BULK_MAX }
  const canDeliver = chosen.size > 0 || state === 'parked' || state === 'pending'
  const finish = () => {
    setChosen(new Set())
    reload()
  }
  return (
    <>
      <Top
        title="Effects"
        actions={
          canOperate.value &&
          canDeliver &&
          effects.length > 0 && (
            <button
              type="button"
              class="button primary"
              onClick={() => askToDeliver(selection, finish)}
            >
              {chosen.size > 0 ? `Deliver ${chosen.size} again…` : 'Deliver all matching again…'}
            </button>
          )
        }
      >
        <Views state={state} />
      </Top>
      <div class="stack">
        <FilterBar fields={FIELDS} fallback="type" hint="Filter: type, jobId…" />
        <Failure error={error} retry={reload} />
        {data !== undefined && (
          <Panel flush>
            {effects.length === 0 ? (
              <NoEffects state={state} />
            ) : (
              <Table
                label="Effects"
                columns={COLUMNS}
                rows={effects}
                keyOf={({ key }) => key}
                hrefOf={effectHref}
                {...(canOperate.value && { chosen, choose: setChosen })}
              />
            )}
          </Panel>
        )}
        <Pages after={after} next={data?.nextCursor ?? null} shown={effects.length} />
        <Cli line={['pawl effect list', ...effectWords(filter)].join(' ')} />
      </div>
    </>
  )
}

function Views({ state }: { state: string }) {
  return (
    <nav class="row" aria-label="Effects in this state">
      {VIEWS.map((view) => (
        <a
          key={view}
          class="chip flat plain"
          href={hrefOf('/effects', { state: view === 'parked' ? undefined : view })}
          aria-current={view === state ? 'true' : undefined}
        >
          {TITLES[view]}
        </a>
      ))}
    </nav>
  )
}

function effectHref({ jobId }: Effect): string {
  return `${jobHref(jobId)}?tab=effects`
}

const COLUMNS: readonly Column<Effect>[] = [
  {
    title: 'Effect',
    cell: (effect) => (
      <a class="plain" href={effectHref(effect)}>
        <Name text={effect.name} clip />
      </a>
    ),
  },
  effectState,
  { title: 'Job type', wide: true, cell: ({ jobType }) => <Name text={jobType} clip /> },
  { title: 'When', number: true, cell: ({ runAt }) => <Time at={runAt} /> },
  ...effectColumns,
]

function NoEffects({ state }: { state: string }) {
  if (state === 'parked') {
    return (
      <Empty title="No parked effects">
        An effect is parked if its deliveries have failed too often. It waits here for a person.
      </Empty>
    )
  }
  return <Empty title="No effects here">A handler declares one with `tx.effect`.</Empty>
}
