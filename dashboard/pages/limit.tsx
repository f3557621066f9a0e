/** One limit, or one key of it: use, holders, blocked keys, its number and who has set it. */
import { useState } from 'preact/hooks'
import { shellWord } from '../../src/doctor/shell-word.ts'
import { type Answer, call, type Refused } from '../api/client.ts'
import type { Gate, LimitDetails, LimitRecord } from '../api/operations.ts'
import { canOperate, now } from '../api/session.ts'
import { ON_FACTS, useView } from '../api/view.ts'
import { lineOf } from '../controls/act.tsx'
import { askToReset, askToSet, titleOf } from '../controls/limit-acts.tsx'
import { count, counted, span } from '../format.ts'
import { Spark } from '../overview/spark.tsx'
import { hrefOf, jobHref, limitHref, place } from '../router.ts'
import { Cli, Count, Empty, Failure, Name, Panel, Time, Top } from '../ui/parts.tsx'
import { State } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'
import { Use, valueText } from './limits.tsx'

interface Shown {
  readonly details: LimitDetails
  readonly keys: readonly Gate[]
}

const KEYS_MAX = 100

async function load(limit: string, key: string | undefined, signal: AbortSignal): Promise<Shown> {
  const details = await call('showLimit', { params: { limit }, query: { key } }, signal)
  if (key !== undefined) return { details, keys: [] }
  const query = { name: limit, limit: KEYS_MAX }
  const { items } = await call('listGates', { query }, signal)
  const keys = items
    .filter((gate) => gate.key !== undefined)
    .toSorted((a, b) => b.blocked - a.blocked)
  return { details, keys }
}

export function LimitPage({ limit }: { limit: string }) {
  const key = place.value.query.get('key') ?? undefined
  const view = useView(`limit ${limit} ${key}`, (signal) => load(limit, key, signal), ON_FACTS)
  const { data, error, reload } = view
  return (
    <>
      <Top
        title={titleOf({ limit, key })}
        actions={data && <Buttons details={data.details} reload={reload} />}
      >
        {key === undefined ? (
          <a class="small" href={hrefOf('/limits')}>
            all limits
          </a>
        ) : (
          <a class="small" href={limitHref(limit)}>
            all keys
          </a>
        )}
        {data && <Verdict {...data} />}
      </Top>
      <div class="stack">
        <Failure error={error} retry={reload} />
        {data && <Body {...data} reload={reload} />}
      </div>
    </>
  )
}

function Verdict({ details, keys }: Shown) {
  const full = keys.filter((gate) => gate.blocked > 0)
  const all = [details, ...full]
  const blocked = all.reduce((sum, one) => sum + one.blocked, 0)
  if (blocked === 0) return <State tone="succeeded" word="blocks nothing" />
  const first = Math.min(...all.map((one) => one.blockedSince ?? now.value))
  const where = full.length === 0 ? '' : ` in ${counted(full.length, 'key')}`
  const says = `${counted(blocked, 'job')} blocked${where} for ${span(now.value - first)}`
  return <State tone="blocked" word={says} />
}

function Buttons({ details, reload }: { details: LimitDetails; reload: () => void }) {
  if (!canOperate.value || details.kind === 'throttle') return null
  const isSet = details.setting !== null && details.setting.override !== null
  return (
    <>
      {isSet && (
        <button type="button" class="button" onClick={() => askToReset(details, reload)}>
          Reset…
        </button>
      )}
      <button type="button" class="button" onClick={() => askToSet(details, reload)}>
        Set…
      </button>
    </>
  )
}

function Body({ details, keys, reload }: Shown & { reload: () => void }) {
  const { limit, key, holders, records } = details
  const words = key === undefined ? [] : [`--key=${shellWord(key)}`]
  return (
    <>
      <div class="columns even stretch">
        <Panel title="Use">
          <Facts details={details} keys={keys} />
        </Panel>
        <Panel title="Use over the last day">
          <History limit={limit} limitKey={key} />
        </Panel>
      </div>
      {keys.length > 0 && (
        <Panel title={`Keys in use${keys.length === KEYS_MAX ? ', the first 100' : ''}`} flush>
          <Keys keys={keys} reload={reload} />
        </Panel>
      )}
      {(keys.length === 0 || holders.length > 0) && (
        <Panel title={`Holders: ${counted(holders.length, 'job')}`} flush>
          {holders.length === 0 ? <Empty title="No job holds it now" /> : <Holders all={holders} />}
        </Panel>
      )}
      <Panel title="Changes" flush>
        {records.length === 0 ? <Empty title="Never changed" /> : <Records records={records} />}
      </Panel>
      <Cli line={lineOf('pawl limit show', limit, words)} />
    </>
  )
}

function Facts({ details, keys }: Shown) {
  const { setting, kind, blocked, blockedSince } = details
  return (
    <dl class="facts">
      <dt>now</dt>
      <dd>
        {keys.length === 0 ? (
          <Use row={details} />
        ) : (
          `${counted(keys.length, 'key')} in use, each with a number of its own`
        )}
      </dd>
      <dt>blocked</dt>
      <dd>
        <Count value={keys.reduce((sum, gate) => sum + gate.blocked, blocked)} />
        {blockedSince !== undefined && (
          <>
            , the oldest <Time at={blockedSince} />
          </>
        )}
      </dd>
      <dt>in the code</dt>
      <dd>{setting === null ? 'no number of its own' : valueText({ setting, kind })}</dd>
      {setting !== null && setting.override !== null && (
        <>
          <dt>set by an operator</dt>
          <dd>
            <b>{count(setting.override)}</b> by <Name text={setting.overrideBy ?? '–'} />,{' '}
            <Time at={setting.overrideAt} />: <Name text={setting.overrideNote ?? 'no reason'} />
          </dd>
        </>
      )}
    </dl>
  )
}

const DAY_MS = 86_400_000

/** Computed from the ledger on request, because that reads all facts of the time. */
function History({ limit, limitKey: key }: { limit: string; limitKey: string | undefined }) {
  const [found, setFound] = useState<Answer<'auditLimit'>>()
  const [error, setError] = useState<Refused>()
  const [busy, setBusy] = useState(false)
  const ask = async () => {
    setBusy(true)
    setError(undefined)
    const query = { key, since: now.value - DAY_MS }
    await call('auditLimit', { params: { limit }, query }).then(setFound, setError)
    setBusy(false)
  }
  if (found === undefined) {
    return (
      <>
        <p class="muted small">Starts and ends in the ledger say what its use was.</p>
        <p>
          <button type="button" class="button" disabled={busy} onClick={() => void ask()}>
            Compute from the ledger
          </button>
        </p>
        <Failure error={error} />
      </>
    )
  }
  const { curve, peak, claims, violationCount } = found
  return (
    <>
      <p class="small">
        <b class="big">{count(peak?.used ?? 0)}</b> at most, {counted(claims, 'start')}
        {', '}
        {violationCount === 0 ? 'never more than allowed' : `${count(violationCount)} too many`}
      </p>
      {curve.length > 1 && <Spark values={curve.map((one) => one.peak)} label="Use over time" />}
    </>
  )
}

function Keys({ keys, reload }: { keys: readonly Gate[]; reload: () => void }) {
  return (
    <Table
      label="Keys in use"
      rows={keys}
      keyOf={({ key }) => key ?? ''}
      hrefOf={({ limit, key }) => limitHref(limit, key)}
      columns={[
        {
          title: 'Key',
          cell: ({ limit, key = '' }) => (
            <a class="plain" href={limitHref(limit, key)}>
              <Name text={key} clip />
            </a>
          ),
        },
        { title: 'Blocked', number: true, cell: ({ blocked }) => <Count value={blocked} /> },
        {
          title: 'Oldest blocked',
          number: true,
          wide: true,
          cell: (gate) => <Time at={gate.blockedSince} />,
        },
        { title: 'Use', cell: (gate) => <Use row={gate} /> },
        {
          title: 'Action',
          tight: true,
          cell: (gate) =>
            canOperate.value &&
            gate.kind === 'concurrency' && (
              <button
                type="button"
                class="button slim"
                aria-label={`Set ${titleOf(gate)}`}
                onClick={() => askToSet(gate, reload)}
              >
                Set…
              </button>
            ),
        },
      ]}
    />
  )
}

function Holders({ all }: { all: LimitDetails['holders'] }) {
  return (
    <Table
      label="Holders"
      rows={all}
      keyOf={({ id }) => id}
      hrefOf={({ id }) => jobHref(id)}
      columns={[
        {
          title: 'Job',
          cell: ({ id, type }) => (
            <a class="plain" href={jobHref(id)}>
              <Name text={type} clip />
            </a>
          ),
        },
        {
          title: 'Worker',
          cell: ({ worker }) => (
            <a href={hrefOf('/workers', { worker })}>
              <Name text={worker} clip />
            </a>
          ),
        },
        { title: 'Started', tight: true, cell: ({ startedAt }) => <Time at={startedAt} /> },
        { title: 'Lease', tight: true, wide: true, cell: (job) => <Time at={job.leaseUntil} /> },
      ]}
    />
  )
}

function changeText({ action, after }: LimitRecord): string {
  if (action === 'reset') return 'reset to the code'
  if (action === 'set') return `set to ${after.override === null ? '∞' : count(after.override)}`
  return `declared: ${after.max === null ? 'no number' : count(after.max)}`
}

function Records({ records }: { records: readonly LimitRecord[] }) {
  return (
    <Table
      label="Changes"
      rows={records}
      keyOf={({ number }) => String(number)}
      columns={[
        { title: 'When', tight: true, cell: ({ at }) => <Time at={at} /> },
        { title: 'Change', cell: changeText },
        { title: 'Key', wide: true, cell: ({ key }) => <Name text={key ?? '–'} clip /> },
        { title: 'By', cell: ({ operator, actor }) => <Name text={operator ?? actor} clip /> },
        { title: 'Reason', cell: ({ note }) => <Name text={note ?? '–'} /> },
      ]}
    />
  )
}
