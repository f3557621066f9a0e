/** Every machine, drawn from its data: the rules of jobs, attempts, workers and runs. */
import { call } from '../api/client.ts'
import { useView } from '../api/view.ts'
import { Graph } from '../graph/graph.tsx'
import { toneOf } from '../machine-data.ts'
import { machineOf } from '../machines.ts'
import { hrefOf, place, setQuery } from '../router.ts'
import { Cli, Empty, Failure, Panel, Top } from '../ui/parts.tsx'
import { State } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'

export function MachinesPage() {
  const { data, error, reload } = useView('machines', (signal) => call('listMachines', {}, signal))
  const machines = data?.items ?? []
  const wanted = place.value.query.get('machine') ?? machines[0]?.name ?? ''
  const version = place.value.query.get('version') ?? undefined
  const chosen = machines.find(
    (one) => one.name === wanted && (version === undefined || String(one.version) === version),
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
              key={`${one.name}@${one.version}`}
              class={one === chosen ? 'button primary' : 'button'}
              href={hrefOf('/machines', { machine: one.name, version: one.version })}
              aria-current={one === chosen ? 'true' : undefined}
            >
              {one.name}
              {one.version > 1 && ` v${one.version}`}
            </a>
          ))}
        </nav>
        {chosen && <Machine name={chosen.name} version={chosen.version} full={isFull} />}
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

function Machine({ name, version, full }: { name: string; version: number; full: boolean }) {
  const machine = machineOf(name, version)
  if (machine === undefined) return <Empty title="Loading the machine…" />
  const { states, edges, kind, initial } = machine
  const rows = Object.entries(states)
  return (
    <>
      <Panel title={`${WHAT[kind] ?? kind}: ${rows.length} states, ${edges.length} edges`}>
        <Graph
          machine={machine}
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
      </div>
      <Cli line={`pawl machine show ${name} --mermaid`} />
    </>
  )
}

const START = { says: 'starts here' } as const
