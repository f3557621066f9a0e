/** Everything that is stored of a job, in tabs: ledger, payloads, steps, signals and others. */
import type { ThrownError } from '../../src/core/thrown.ts'
import { call } from '../api/client.ts'
import { useView } from '../api/view.ts'
import { type Effect, effectColumns, effectState } from '../effects/columns.tsx'
import { clock, exact } from '../format.ts'
import { place, setQuery } from '../router.ts'
import { Diff } from '../ui/history.tsx'
import { Empty, Failure, Lines, Name, Tabs } from '../ui/parts.tsx'
import { PayloadText } from '../ui/payload.tsx'
import { Table } from '../ui/table.tsx'
import { Ledger } from './ledger.tsx'
import type { JobData, Moment } from './load.ts'
import { Signals } from './signals.tsx'

interface Props {
  readonly data: JobData
  readonly moment: Moment
  readonly travel: (to: number | undefined) => void
}

export function Details(props: Props) {
  const { data, moment } = props
  const chosen = place.value.query.get('tab') ?? 'ledger'
  const steps = moment.facts.filter(({ trigger }) => trigger === 'step').length
  const signals = moment.facts.filter(({ trigger }) => trigger === 'signal').length
  const errors = errorsOf(moment)
  const tabs = [
    { id: 'ledger', label: `Ledger ${data.facts.length}` },
    { id: 'input', label: 'Input' },
    { id: 'steps', label: `Steps ${steps}` },
    { id: 'signals', label: `Signals ${signals}` },
    { id: 'effects', label: 'Effects' },
    { id: 'errors', label: `Errors ${errors.length}` },
    { id: 'result', label: 'Result' },
    { id: 'changes', label: `Changes at #${moment.at}` },
    { id: 'job', label: 'All fields' },
  ]
  const choose = (id: string) =>
    setQuery({ tab: id === 'ledger' ? undefined : id }, { replace: true })
  return (
    <section class="panel flush" aria-label="Details">
      <Tabs tabs={tabs} chosen={chosen} choose={choose} />
      <Body {...props} tab={chosen} errors={errors} />
    </section>
  )
}

function Body({ data, moment, travel, tab, errors }: Props & { tab: string; errors: Failed[] }) {
  const { job } = data
  if (tab === 'ledger') return <Ledger data={data} moment={moment} travel={travel} />
  return (
    <div class="tab-body" role="tabpanel" aria-labelledby={`tab-${tab}`}>
      {tab === 'input' && <PayloadText payload={data.input} of={{ id: job.id, what: 'input' }} />}
      {tab === 'result' && (
        <PayloadText payload={data.result} of={{ id: job.id, what: 'result' }} />
      )}
      {tab === 'steps' && <Steps id={job.id} seq={moment.at} />}
      {tab === 'signals' && <Signals id={job.id} seq={job.seq} />}
      {tab === 'effects' && <Effects id={job.id} seq={job.seq} />}
      {tab === 'errors' && <Errors errors={errors} />}
      {tab === 'changes' && <Diff changes={moment.changes} />}
      {tab === 'job' && <Lines text={JSON.stringify(moment.job, null, 2)} />}
    </div>
  )
}

interface Failed {
  readonly attempts: number[]
  readonly at: number
  readonly message: string
  readonly fingerprint: string
  readonly thrown: ThrownError | null
}

/** The failures of a job, grouped: the same kind at the same place is one group. */
function errorsOf({ executions, facts }: Moment): Failed[] {
  const groups = new Map<string, Failed>()
  for (const { error, thrown, attempt, finishedAt } of executions) {
    if (error === null) continue
    const fingerprint = error.fingerprint ?? error.message
    const known = groups.get(fingerprint)
    if (known !== undefined) known.attempts.push(attempt)
    else {
      const at = finishedAt ?? facts.at(-1)?.at ?? 0
      const { message } = error
      groups.set(fingerprint, { attempts: [attempt], at, message, fingerprint, thrown })
    }
  }
  return [...groups.values()]
}

function Errors({ errors }: { errors: readonly Failed[] }) {
  if (errors.length === 0) return <Empty title="No attempt has failed" />
  return (
    <div class="stack">
      {errors.map(({ attempts, at, message, fingerprint, thrown }) => (
        <article key={fingerprint}>
          <p class="small muted">
            Attempt {attempts.join(', ')}, first at <span title={exact(at)}>{clock(at)}</span>
          </p>
          {thrown === null ? <Name text={message} /> : <Thrown error={thrown} />}
        </article>
      ))}
    </div>
  )
}

/** An error with its stack and its causes. */
function Thrown({ error, word }: { error: ThrownError; word?: string }) {
  const { name, message, code, stack, fields, cause, errors = [] } = error
  return (
    <div class="thrown">
      <h3>
        {word && <span class="muted">{word} </span>}
        <Name text={`${name}: ${message}`} /> {code && <span class="chip flat mono">{code}</span>}
      </h3>
      {fields && <p class="mono muted">{JSON.stringify(fields)}</p>}
      {stack && <pre class="muted">{stack}</pre>}
      {cause && <Thrown error={cause} word="caused by" />}
      {errors.map((one, index) => (
        <Thrown key={`${index} ${one.message}`} error={one} word="with" />
      ))}
    </div>
  )
}

function Steps({ id, seq }: { id: string; seq: number }) {
  const query = { payloads: true, limit: 1000 } as const
  const { data, error, reload } = useView(`${id} ${seq} steps`, (signal) =>
    call('listJobFacts', { params: { id }, query }, signal),
  )
  const steps = (data?.items ?? []).filter(({ fact }) => fact.step !== undefined && fact.seq <= seq)
  if (data !== undefined && steps.length === 0) {
    return <Empty title="No steps">A handler records one with `step(name, fn)`.</Empty>
  }
  return (
    <div class="stack">
      <Failure error={error} retry={reload} />
      {steps.map(({ fact, payload }) => (
        <article key={fact.seq}>
          <p>
            <b>
              <Name text={fact.step?.name ?? ''} />
            </b>{' '}
            <span class="small muted">
              #{fact.seq}, <span title={exact(fact.at)}>{clock(fact.at)}</span>
            </span>
          </p>
          <PayloadText payload={payload ?? null} />
        </article>
      ))}
    </div>
  )
}

function Effects({ id, seq }: { id: string; seq: number }) {
  const { data, error, reload } = useView(`${id} ${seq} effects`, (signal) =>
    call('listEffects', { query: { jobId: id } }, signal),
  )
  if (data === undefined) return <Failure error={error} retry={reload} />
  if (data.items.length === 0) {
    return <Empty title="No effects">A handler declares one with `tx.effect` in its commit.</Empty>
  }
  return (
    <Table<Effect>
      label="Effects"
      rows={data.items}
      keyOf={({ key }) => key}
      columns={[
        { title: 'Effect', cell: ({ name }) => <Name text={name} clip /> },
        effectState,
        ...effectColumns,
      ]}
    />
  )
}
