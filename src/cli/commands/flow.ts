/** `pawl flow list|show` and `pawl batch show`: flows and batches, now and as they were. */
import type { FlowBox, FlowEdge } from '../../audit/flow-folding.ts'
import { boxSays, boxTitle, edgeSays, flowMermaid } from '../../audit/flow-mermaid.ts'
import type { FlowPoint } from '../../audit/flow-points.ts'
import { span } from '../../core/format.ts'
import { pagesOf } from '../../engine/pages.ts'
import { moment, relative, stamp } from '../../environment/times.ts'
import { type FlowView, findFlow, nodesOf, readFlow } from '../../http/flow-view.ts'
import { FLOW_KINDS, FLOW_STATES } from '../../http/link-components.ts'
import type { FlowFilter, FlowInfo, FlowProgress } from '../../stores/contract/flows.ts'
import { FlowNotFound } from '../../stores/errors.ts'
import { UsageInvalid } from '../errors.ts'
import { loadJobFiles } from '../job-files.ts'
import { withPawl } from '../opening.ts'
import { PAGING_OPTIONS, walkOf } from '../paging.ts'
import { type Call, type CommandSpec, hasFlag, textOf } from '../spec.ts'
import { readPast } from '../times.ts'
import { visible } from '../visible.ts'

async function list(call: Call): Promise<undefined> {
  const { output } = call
  const walk = walkOf(call)
  const filter = filterOf(call)
  let after: string | undefined
  await withPawl(call, async ({ store }) => {
    const rows: string[][] = []
    const ask = (page: { limit: number; after?: string }) => store.flows.list(filter, page)
    for await (const page of pagesOf(ask, walk)) {
      after = page.after
      for (const flow of page.items) {
        const progress = await store.flows.progress(flow.id)
        if (output.json) output.record({ ...flow, progress })
        else rows.push(rowOf(call, flow, progress, store.now()))
      }
      await output.taken()
    }
    if (!output.json) printFlows(call, rows)
  })
  if (after !== undefined) output.say(`There may be more: --after ${after}`)
  return undefined
}

function filterOf(call: Call): FlowFilter {
  const names = ['state', 'kind', 'key'].flatMap((name) => {
    const text = textOf(call, name)
    return text === undefined ? [] : [[name, text] as const]
  })
  return Object.fromEntries(names) as FlowFilter
}

function rowOf(
  { output }: Call,
  flow: FlowInfo,
  progress: FlowProgress | undefined,
  now: number,
): string[] {
  const { id, kind, key, state, createdAt } = flow
  const created = output.isTerminal ? relative(createdAt, now) : stamp(createdAt)
  return [
    id,
    kind,
    state,
    progress === undefined ? '-' : progressText(progress),
    created,
    key ?? '',
  ]
}

function printFlows({ output }: Call, rows: readonly string[][]): void {
  if (rows.length === 0) output.say('No flow matches.')
  const heads = ['id', 'kind', 'state', 'progress', 'created', 'key']
  output.table(
    heads.map((head) => ({ head, max: 80 })),
    rows,
  )
}

/** `3 of 5 succeeded, 1 parked, 1 live`. */
export function progressText({ members, succeeded, ...rest }: FlowProgress): string {
  const others = (['failed', 'cancelled', 'parked', 'live'] as const).flatMap((word) =>
    rest[word] > 0 ? `${rest[word]} ${word}` : [],
  )
  return [`${succeeded} of ${members} succeeded`, ...others].join(', ')
}

async function show(call: Call): Promise<undefined> {
  const { output } = call
  const [id = ''] = call.args
  const given = textOf(call, 'at')
  const isMermaid = hasFlag(call, 'mermaid')
  if (isMermaid && output.json) {
    throw new UsageInvalid('--mermaid and --json cannot be used together', 'Remove one of them.')
  }
  const timeOf = (now: number) => (given === undefined ? undefined : readPast(given, 'at', now))
  timeOf(call.environment.clock.now())
  const jobs = call.options.jobs === undefined ? [] : await loadJobFiles(call.settings.jobs.value)
  await withPawl(
    call,
    async (pawl) => {
      const at = timeOf(pawl.store.now())
      const view = await readFlow(pawl, id, { at, unfolded: hasFlag(call, 'all') })
      if (isMermaid) output.line(flowMermaid(view.graph, view.flow.createdAt).trimEnd())
      else if (output.json) await printJson(call, view, nodesOf(pawl.store, id, at))
      else printFlow(call, view, at ?? pawl.store.now(), at !== undefined)
    },
    { jobs },
  )
  return undefined
}

/** The flow is the first line, and each node a further one. */
async function printJson(
  { output }: Call,
  { flow, progress, graph, points }: FlowView,
  nodes: ReturnType<typeof nodesOf>,
): Promise<void> {
  const { critical } = graph
  output.record({ kind: 'flow', flow, progress, critical })
  const statuses = new Map(points.map(({ n, status }) => [n, status]))
  const onPath = new Set(critical)
  for await (const node of nodes) {
    const { n } = node
    output.record({ kind: 'node', ...node, status: statuses.get(n), critical: onPath.has(n) })
    await output.taken()
  }
}

function printFlow(call: Call, view: FlowView, now: number, isPast: boolean): void {
  const { output } = call
  const { flow, progress, graph, points } = view
  const title = `${flow.kind} ${flow.id}`
  output.line(`${output.style('bold', visible(title))}  ${flow.state}${flow.open ? ', open' : ''}`)
  const lines: [string, string | undefined][] = [
    ['key', flow.key === null ? undefined : visible(flow.key)],
    ['created', moment(flow.createdAt, now)],
    ['progress', isPast ? undefined : progressText(progress)],
    ['as of', isPast ? stamp(now) : undefined],
  ]
  for (const [name, text] of lines) {
    if (text !== undefined) output.line(`  ${output.style('dim', name.padEnd(10))} ${text}`)
  }
  output.line()
  printBoxes(call, view)
  const path = pathText(points, graph.critical, now)
  if (path !== '') {
    output.line()
    output.line(`${output.style('bold', 'critical path')}  ${visible(path)}`)
  }
  if (graph.boxes.some(({ count }) => count > 1)) {
    output.say('Nodes that are alike are folded; --all lists every node.')
  }
}

const HEADS = ['', 'nodes', 'type', 'state', 'after', 'released', 'started', 'ended', 'job']

function printBoxes({ output }: Call, { flow, graph }: FlowView): void {
  const boxes = new Map(graph.boxes.map((box) => [box.id, box]))
  const since = (at: number | null) => (at === null ? '-' : `+${span(at - flow.createdAt)}`)
  const edgesOf = (id: string) => graph.edges.filter(({ to }) => to === id)
  output.table(
    HEADS.map((head) => ({ head, max: 60 })),
    graph.boxes.map((box) => [
      box.critical ? '*' : ' ',
      numbersOf(box),
      box.count === 1 ? box.type : boxTitle(box),
      boxSays(box).replace(/ in \S+( \S+)?$/, ''),
      edgesOf(box.id)
        .map((edge) => edgeText(edge, boxes.get(edge.from) as FlowBox, flow.createdAt))
        .join(', ') || '-',
      ...[since(box.releasedAt), since(box.startedAt), since(box.endedAt)],
      box.job ?? '-',
    ]),
  )
}

function numbersOf({ first, last }: FlowBox): string {
  return first === last ? String(first) : `${first}-${last}`
}

function edgeText(edge: FlowEdge, from: FlowBox, since: number): string {
  const says = edgeSays(edge, since)
  return `${edge.names.join('/')} ${numbersOf(from)}${says === '' ? '' : ` ${says}`}`
}

/** Each node of the critical path, with how long it took, or its status. */
function pathText(points: readonly FlowPoint[], path: readonly number[], now: number): string {
  const byNumber = new Map(points.map((point) => [point.n, point]))
  const parts = path.flatMap((n) => {
    const point = byNumber.get(n)
    return point === undefined ? [] : [`${point.type} #${n} (${tookText(point, now)})`]
  })
  return parts.join(' → ')
}

function tookText({ status, startedAt, endedAt }: FlowPoint, now: number): string {
  if (startedAt === null) return status
  if (endedAt === null) return `${status} for ${span(now - startedAt)}`
  return status === 'succeeded'
    ? span(endedAt - startedAt)
    : `${status} after ${span(endedAt - startedAt)}`
}

async function showBatch(call: Call): Promise<undefined> {
  const { output } = call
  const [id = ''] = call.args
  await withPawl(call, async ({ store }) => {
    const flow = await findFlow(store, id)
    const progress = await store.flows.progress(id)
    if (flow.kind !== 'batch' || progress === undefined) throw new FlowNotFound(visible(id))
    if (output.json) return output.record({ flow, progress })
    output.line(`batch ${flow.id}  ${flow.state}${flow.open ? ', open' : ''}`)
    output.line(`  ${progressText(progress)}`)
    for await (const { n, job } of nodesOf(store, id)) {
      if (n >= flow.callbacks) return
      output.line(`  callback ${visible(job.type)} ${job.id} ${visible(job.state)}`)
    }
  })
  return undefined
}

const ID = '0198a1b2-0000-7000-8000-000000000001'
const ID_ARGUMENT = { flags: '<id>', says: 'the id of the flow or batch' }

export const commands: readonly CommandSpec[] = [
  {
    name: 'flow list',
    summary: 'List flows and batches, newest first, with how far each is',
    details: 'A flow is open until all jobs have ended; attention means that a job is parked.',
    options: [
      { flags: '--state <state>', says: 'flows in this state', choices: FLOW_STATES },
      { flags: '--kind <kind>', says: 'only flows, or only batches', choices: FLOW_KINDS },
      { flags: '--key <key>', says: 'the flow with this key' },
      ...PAGING_OPTIONS,
    ],
    examples: [
      ['pawl flow list', 'the newest ones'],
      ['pawl flow list --state attention', 'those that need a person'],
    ],
    run: list,
  },
  {
    name: 'flow show',
    summary: 'Show the jobs of a flow, what each waits for, and the critical path',
    details:
      'Times are counted from the creation of the flow. A star marks the critical path: the ' +
      'chain of jobs that decides when the flow is done. In a large flow, jobs of the same type ' +
      'that wait for the same are one line. With --json, the flow is the first line, and each ' +
      'job a further one.',
    args: [ID_ARGUMENT],
    options: [
      { flags: '--at <time>', says: 'as it was at a date, or a time ago (5m)' },
      { flags: '--mermaid', says: 'print a Mermaid diagram' },
      { flags: '--all', says: 'every job on a line of its own' },
      { flags: '--jobs <file>', says: 'a job file with its own lifecycles', repeats: true },
    ],
    examples: [
      [`pawl flow show ${ID}`, 'for people'],
      [`pawl flow show ${ID} --at 2026-11-16T02:31Z`, 'the flow as it was'],
      [`pawl flow show ${ID} --mermaid`, 'a diagram'],
    ],
    run: show,
  },
  {
    name: 'batch show',
    summary: 'Show how far a batch is, and its callbacks',
    args: [ID_ARGUMENT],
    examples: [
      [`pawl batch show ${ID}`, 'for people'],
      [`pawl batch show ${ID} --json`, 'its counts as one JSON object'],
    ],
    run: showBatch,
  },
]
