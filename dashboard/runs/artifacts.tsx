/** The artifacts of a run: hash, who wrote it, whether it is stale and why, and its content. */
import { useState } from 'preact/hooks'
import type { Artifact } from '../../src/core/run/run.ts'
import { addressOf, authorization, call, type Refused, reach, refusalOf } from '../api/client.ts'
import { useView } from '../api/view.ts'
import { count } from '../format.ts'
import { place, setQuery } from '../router.ts'
import { indented } from '../ui/indented.ts'
import { Copy, Empty, Failure, Lines, Name, Time } from '../ui/parts.tsx'
import { State } from '../ui/state.tsx'
import { type Column, Table } from '../ui/table.tsx'
import type { RunMoment } from './load.ts'
import { More } from './more.tsx'
import { timeOf } from './walk.ts'

const ROWS_MAX = 500

export function Artifacts({ moment: { run } }: { moment: RunMoment }) {
  const all = Object.entries(run.artifacts_index)
  const staleOnly = place.value.query.get('stale') === 'yes'
  const stale = all.filter(([, artifact]) => artifact.stale_because !== null)
  // Stale ones first: they are what a person looks for.
  const fresh = all.filter(([, artifact]) => artifact.stale_because === null)
  const rows = staleOnly ? stale : [...stale, ...fresh]
  const opened = place.value.query.get('artifact')
  const chosen = all.find(([name]) => name === opened)
  if (all.length === 0) {
    return <Empty title="No artifacts">A node writes one with `run.artifact(name).write`.</Empty>
  }
  return (
    <>
      <div class="row">
        <label class="row small">
          <input
            type="checkbox"
            checked={staleOnly}
            onChange={() => setQuery({ stale: staleOnly ? undefined : 'yes' }, { replace: true })}
          />
          Only the {count(stale.length)} stale
        </label>
      </div>
      {chosen && <Content id={run.run_id} name={chosen[0]} sha256={chosen[1].sha256} />}
      <Table
        label="Artifacts"
        rows={rows.slice(0, ROWS_MAX)}
        keyOf={([name]) => name}
        classOf={([name]) => (name === opened ? 'chosen' : undefined)}
        columns={columnsOf(opened)}
      />
      <More all={rows.length} shown={ROWS_MAX} line={`pawl run show ${run.run_id} --json`} />
    </>
  )
}

type Row = readonly [string, Artifact]

function columnsOf(opened: string | null): Column<Row>[] {
  return [
    {
      title: 'Artifact',
      cell: ([name]) => (
        <button
          type="button"
          class="seq left"
          aria-expanded={name === opened}
          onClick={() =>
            setQuery({ artifact: name === opened ? undefined : name }, { replace: true })
          }
        >
          <Name text={name} clip />
        </button>
      ),
    },
    {
      title: 'Is',
      tight: true,
      cell: ([, { stale_because: because }]) =>
        because === null ? (
          <State tone="succeeded" word="fresh" />
        ) : (
          <State tone="retrying" word="stale" />
        ),
    },
    {
      title: 'Because of',
      cell: ([, { stale_because: because }]) =>
        because !== null && (
          <span class="muted">
            <Name text={because} clip />
          </span>
        ),
    },
    {
      title: 'Written by',
      wide: true,
      cell: ([, artifact]) => <Name text={artifact.work_item ?? 'its node'} clip />,
    },
    {
      title: 'Written',
      number: true,
      wide: true,
      cell: ([, { ts }]) => <Time at={timeOf(ts)} />,
    },
    {
      title: 'SHA-256',
      tight: true,
      cell: ([, { sha256 }]) => (
        <span class="mono muted" title={sha256}>
          {sha256.slice(0, 12)} <Copy text={sha256} />
        </span>
      ),
    },
  ]
}

interface Version {
  readonly id: string
  readonly name: string
  readonly sha256: string
}

/** The content of the version at this moment, which need not be the latest. */
export function Content(version: Version) {
  const { id, name, sha256 } = version
  const [failed, setFailed] = useState<Refused>()
  const params = { id, artifact: name }
  const { data, error, reload } = useView(`${id} ${name} ${sha256}`, (signal) =>
    call('showArtifact', { params, query: { sha256 } }, signal),
  )
  return (
    <section class="content stack" aria-label={`Content of ${name}`}>
      <h3>
        <Name text={name} />
      </h3>
      <Failure error={error ?? failed} retry={reload} />
      {data &&
        (data.text === null ? (
          <p class="muted">The content is not text.</p>
        ) : (
          <Lines text={/^\s*[[{]/.test(data.text) ? indented(data.text) : data.text} />
        ))}
      {data && (
        <div class="row small muted">
          {count(data.bytes)} bytes{data.truncated && ', shown in part'}
          <button
            type="button"
            class="copy"
            onClick={() => void download(version).catch(setFailed)}
          >
            Download
          </button>
        </div>
      )}
    </section>
  )
}

async function download({ id, name, sha256 }: Version): Promise<void> {
  const address = addressOf('downloadArtifact', {
    params: { id, artifact: name },
    query: { sha256 },
  })
  const response = await reach(address, { headers: authorization() })
  if (!response.ok) throw await refusalOf(response)
  const link = document.createElement('a')
  link.href = URL.createObjectURL(await response.blob())
  link.download = sha256
  link.click()
  URL.revokeObjectURL(link.href)
}
