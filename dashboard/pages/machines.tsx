/** Every machine, drawn from its data: the rules of jobs, attempts, workers and runs. */
import { useMemo } from 'preact/hooks'
import { shellWord } from '../../src/doctor/shell-word.ts'
import { type Answer, call } from '../api/client.ts'
import { useView } from '../api/view.ts'
import { Graph } from '../graph/graph.tsx'
import { type MachineEdge, toneOf } from '../machine-data.ts'
import { machineOf } from '../machines.ts'
import { hrefOf, place, setQuery } from '../router.ts'
import { pictureOf } from '../runs/walk.ts'
import { Cli, Empty, Failure, Name, Panel, Top } from '../ui/parts.tsx'
import { State } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'

export function MachinesPage() {
  const { data, error, reload } = useView('machines', (signal) => call('listMachines', {}, signal))
  const machines = data?.items ?? []
  const wanted = place.value.query.get('machine') ?? machines[0]?.name ?? ''
  const version = place.value.query.get('version') ?? undefined
  const kind = place.value.query.get('kind') ?? undefined
  const chosen = machines.find(
    (one) =>
      one.name === wanted &&
      (version === undefined || String(one.version) === version) &&
      (kind === undefined || one.kind === kind),
  )
  const isFull = place.value.query.get('edges') !== 'main'
  return (
    <>
      <Top
        title="Machines"
        actions={
          <label class="row small">
            <input
              type="checkbox"
              checked={isFull}
              onChange={() => setQuery({ edges: isFull ? 'main' : undefined }, { replace: true })}
            />
            Edges of operators
          </label>
        }
      />
      <Failure error={error} retry={reload} />
      <div class="stack">
        <nav class="row" aria-label="Machines">
          {machines.map((one) => (
            <a
              key={`${one.kind} ${one.name}@${one.version}`}
              class={one === chosen ? 'button primary' : 'button'}
              href={hrefOf('/machines', hrefQuery(one))}
              aria-current={one === chosen ? 'true' : undefined}
            >
              <Name text={one.name} clip />
              {one.version > 1 && ` v${one.version}`}
            </a>
          ))}
        </nav>
        {chosen && <Machine {...chosen} full={isFull} />}
      </div>
    </>
  )
}

const WHAT: Readonly<Record<string, string>> = {
  job: 'The lifecycle of a job',
  execution: 'One attempt at a job',
  worker: 'The loop of a worker',
  run: 'The machine of a run',
}

type Listed = Answer<'listMachines'>['items'][number]

function hrefQuery({ name: machine, version, kind }: Listed) {
  return { machine, version, kind }
}

function Machine({
  name,
  version,
  kind,
  full,
}: Pick<Listed, 'name' | 'version' | 'kind'> & { full: boolean }) {
  const machine = machineOf(kind, name, version)
  // Edges to failed and cancelled exist in every state of a run.
  const picture = useMemo(
    () => machine && (kind === 'run' ? pictureOf(machine) : machine),
    [machine],
  )
  if (machine === undefined || picture === undefined) return <Empty title="Loading the machine…" />
  const { states, edges, initial } = machine
  const rows = Object.entries(states)
  return (
    <>
      <Panel title={`${WHAT[kind] ?? kind}: ${rows.length} states, ${edges.length} edges`}>
        <Graph
          machine={picture}
          label={`The machine ${name}`}
          full={full}
          stateMark={(state) => ({ seen: true, now: false, ...(state === initial && START) })}
          edgeMark={(edge) => ({ lit: false, label: full ? undefined : edge.on[0] })}
        />
      </Panel>
      <div class="columns even">
        <Panel title="States" flush>
          <Table
            label="States"
            rows={rows}
            keyOf={([state]) => state}
            columns={[
              {
                title: 'State',
                tight: true,
                cell: ([state, { role }]) => <State tone={toneOf(state, role)} word={state} />,
              },
              { title: 'Role', tight: true, cell: ([, spec]) => spec.role ?? '–' },
              {
                title: 'Meaning',
                prose: true,
                cell: ([, spec]) => <span class="muted">{spec.meaning}</span>,
              },
            ]}
          />
        </Panel>
        <Edges edges={edges} />
      </div>
      {/* The command line knows the built-in machine of runs only. */}
      {(kind !== 'run' || name === 'run') && (
        <Cli line={`pawl machine show ${shellWord(name)} --mermaid`} />
      )}
    </>
  )
}

const START = { says: 'starts here' } as const

function Edges({ edges }: { edges: readonly MachineEdge[] }) {
  return (
    <Panel title="Edges" flush>
      <Table
        label="Edges"
        rows={edges}
        keyOf={(edge) => `${edge.from}>${edge.to}>${edge.on.join()}`}
        columns={[
          { title: 'From → to', tight: true, cell: (edge) => `${edge.from} → ${edge.to}` },
          { title: 'By', cell: (edge) => edge.on.join(', ') },
          {
            title: 'Note',
            wide: true,
            cell: (edge) => (
              <span class="muted">{edge.operator ? 'operator' : (edge.because ?? '')}</span>
            ),
          },
        ]}
      />
    </Panel>
  )
}
