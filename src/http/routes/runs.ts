/** Runs: lists, one run now and as it was, its events, and what a resume would do. */
import { changesBetween } from '../../audit/diff.ts'
import type { Run } from '../../core/run/run.ts'
import { RequestRefused } from '../errors.ts'
import { PAGING, pageOf, READ, type Route, type RouteCall } from '../route.ts'
import { count, flag, list, oneOf, open, page, record, ref, text, whole } from '../schema.ts'

const EVENTS_MAX = 1000
const SEQ_MAX = Number.MAX_SAFE_INTEGER

function summaryOf(runId: string, run: Run | undefined) {
  const items = Object.values(run?.work_items ?? {})
  const issues = Object.values(run?.issues ?? {})
  return {
    runId,
    state: run?.run_state ?? null,
    machine: run?.machine.name ?? null,
    events: run?.last_seq ?? null,
    items: items.length,
    finished: items.filter(({ status }) => status === 'finished').length,
    openIssues: issues.filter(({ status }) => status === 'open').length,
  }
}

/** Reads only the snapshots of one page. A run whose snapshot is not valid has no state. */
async function listRuns(call: RouteCall): Promise<unknown> {
  const { journal } = await call.runs()
  const { limit, after = '' } = pageOf(call)
  const isNewest = call.query.order === 'newest'
  const all = isNewest ? (await journal.list()).reverse() : await journal.list()
  const isLater = (id: string) => after === '' || (isNewest ? id < after : id > after)
  const ids = all.filter(isLater)
  const shown = ids.slice(0, limit)
  const items = []
  for (const id of shown) items.push(summaryOf(id, await journal.peek(id)))
  return { items, nextCursor: ids.length > limit ? (shown[shown.length - 1] ?? null) : null }
}

async function showRun({ runs, params }: RouteCall): Promise<unknown> {
  const { run, holder, cancelRequest, damage, tornBytes } = await (await runs()).show(idOf(params))
  return {
    run,
    holder: holder ?? null,
    cancelRequest: cancelRequest ?? null,
    damage: damage ?? null,
    tornBytes,
  }
}

function idOf({ id = '' }: RouteCall['params']): string {
  return id
}

async function pastRun({ runs, params }: RouteCall, seq: number): Promise<Run> {
  const reader = await (await runs()).journal.read(idOf(params))
  const run = await reader.asOf(seq)
  if (run === undefined) throw new RequestRefused(404, `The run has no event ${seq}`)
  return run
}

async function runAt(call: RouteCall): Promise<unknown> {
  const given = call.params.seq ?? ''
  if (!/^\d{1,15}$/.test(given) || Number(given) < 1) {
    throw new RequestRefused(400, 'The number of the event must be a whole number from 1')
  }
  return { run: await pastRun(call, Number(given)) }
}

async function diffRun(call: RouteCall): Promise<unknown> {
  const { run } = await (await call.runs()).show(idOf(call.params))
  const { from = 1, to = run.last_seq } = call.query
  const changes = changesBetween(await pastRun(call, from), await pastRun(call, to))
  return { runId: idOf(call.params), from, to, changes }
}

async function runEvents({ runs, params, query }: RouteCall): Promise<unknown> {
  const { from = 1, limit = EVENTS_MAX } = query
  const items: unknown[] = []
  const range = { from, to: from + limit - 1 }
  for await (const event of (await runs()).events(idOf(params), range)) items.push(event)
  return { items, nextFrom: items.length === limit ? from + limit : null }
}

async function explainRun({ runs, params, query }: RouteCall): Promise<unknown> {
  return (await runs()).explain(idOf(params), query)
}

function verifyRun({ runs, params, examinations }: RouteCall): Promise<unknown> {
  return examinations.hold(async () => {
    const findings = await (await runs()).verify(idOf(params))
    return { ok: findings.every(({ severity }) => severity !== 'error'), findings }
  })
}

const ROOT = '/api/v1/runs'
const RUN = open('a run, as in specs/schemas/snapshot.schema.json without the hash')
const maybe = (description: string) => ({ anyOf: [open(description), { type: 'null' }] })

export const routes: readonly Route[] = [
  {
    method: 'GET',
    path: ROOT,
    operation: 'listRuns',
    summary: 'Lists runs by id, from their snapshots.',
    roles: READ,
    query: { order: oneOf(['oldest', 'newest'], 'by id; oldest if absent'), ...PAGING },
    answer: page(
      record({
        runId: text(),
        state: { type: ['string', 'null'] },
        machine: { type: ['string', 'null'] },
        events: { type: ['integer', 'null'] },
        items: whole(),
        finished: whole(),
        openIssues: whole(),
      }),
    ),
    run: listRuns,
  },
  {
    method: 'GET',
    path: `${ROOT}/{id}`,
    operation: 'showRun',
    summary: 'Shows a run from its whole log, and who holds it.',
    roles: READ,
    errors: [404],
    answer: record({
      run: RUN,
      holder: maybe('the process that works on it'),
      cancelRequest: maybe('the request to cancel it'),
      damage: maybe('the recorded damage of its log'),
      tornBytes: whole(),
    }),
    run: showRun,
  },
  {
    method: 'GET',
    path: `${ROOT}/{id}/events`,
    operation: 'listRunEvents',
    summary: 'Lists the events of a run in order.',
    roles: READ,
    query: {
      from: count('from this event on; 1 if absent', 1, SEQ_MAX),
      limit: count('how many events; 1000 if absent', 1, EVENTS_MAX),
    },
    errors: [404],
    answer: record({
      items: list(open('an event, as in specs/schemas/event.schema.json')),
      nextFrom: { type: ['integer', 'null'] },
    }),
    run: runEvents,
  },
  {
    method: 'GET',
    path: `${ROOT}/{id}/at/{seq}`,
    operation: 'showRunAt',
    summary: 'Shows a run as it was after one of its events.',
    roles: READ,
    errors: [404],
    answer: record({ run: RUN }),
    run: runAt,
  },
  {
    method: 'GET',
    path: `${ROOT}/{id}/diff`,
    operation: 'diffRun',
    summary: 'Compares two states of a run.',
    roles: READ,
    query: {
      from: count('after this event; 1 if absent', 1, SEQ_MAX),
      to: count('after this event; the last one if absent', 1, SEQ_MAX),
    },
    errors: [404],
    answer: record({ runId: text(), from: whole(), to: whole(), changes: list(ref('Change')) }),
    run: diffRun,
  },
  {
    method: 'GET',
    path: `${ROOT}/{id}/explain`,
    operation: 'explainRun',
    summary: 'Explains which work items a resume would run again, and why.',
    roles: READ,
    query: {
      strict: flag('as if items were run again whose inputs turn out to be unchanged'),
      paranoid: flag('read every input file and artifact'),
    },
    errors: [404],
    answer: open('what a resume would do'),
    run: explainRun,
  },
  {
    method: 'GET',
    path: `${ROOT}/{id}/verify`,
    operation: 'verifyRun',
    summary: 'Checks log, chain, schemas, snapshot and artifacts of a run. Changes nothing.',
    roles: READ,
    errors: [404],
    lasts: true,
    answer: record({
      ok: flag('whether there is no error'),
      findings: list(
        record({
          kind: oneOf(['log', 'tail', 'snapshot', 'artifact', 'lease']),
          severity: oneOf(['error', 'notice']),
          message: text(),
          details: open('the values that the check has read'),
        }),
      ),
    }),
    run: verifyRun,
  },
]
