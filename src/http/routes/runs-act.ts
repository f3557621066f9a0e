/**
 * Starts, resumes, cancels, forks and links runs.
 *
 * A run that is started or resumed here is worked on by this process, with the definitions that it
 * was given: `openRuns({ runs })`, or `pawl serve --runs FILE`. The answer comes when the run is
 * durable, not when it ends. If the process stops, the run can be resumed.
 */
import { NameUnknown } from '../../engine/errors.ts'
import { forkRun } from '../../runs/journal/fork.ts'
import type { RunHandle } from '../../runs/runs.ts'
import { Reply } from '../exchange.ts'
import { operatorName, WHO, WHY } from '../operating.ts'
import { OPERATE, type Route, type RouteCall } from '../route.ts'
import { anything, count, flag, list, name, oneOf, record, text } from '../schema.ts'

const ITEMS_MAX = 1000
const SEQ_MAX = Number.MAX_SAFE_INTEGER

function idOf({ id = '' }: RouteCall['params']): string {
  return id
}

/** Begins the work on a run. The slot is held until the run ends or stops. */
async function begin(
  { runSlots, pawl }: RouteCall,
  work: () => Promise<RunHandle>,
): Promise<RunHandle> {
  const release = runSlots.take()
  try {
    const handle = await work()
    handle
      .result()
      .catch((error: unknown) => {
        const fields = { event: 'http.run.failed', run_id: handle.id, error: String(error) }
        pawl.internals.logger.error(fields, 'The work on a run failed')
      })
      .finally(release)
    return handle
  } catch (error) {
    release()
    throw error
  }
}

async function start(call: RouteCall): Promise<unknown> {
  const { definition: wanted, input = null, runId, orResume = false } = call.body
  const runs = await call.runs()
  const definition = runs.definitions.get(wanted)
  if (definition === undefined) {
    throw new NameUnknown('run', wanted, [...runs.definitions.keys()])
  }
  const { id } = await begin(call, () => {
    if (orResume) return runs.startOrResume(definition, { input, runId })
    return runs.start(definition, { input, ...(runId !== undefined && { runId }) })
  })
  const headers = {
    'content-type': 'application/json',
    location: `${call.basePath}${ROOT}/${encodeURIComponent(id)}`,
  }
  return new Reply(JSON.stringify({ runId: id }), headers, 201)
}

async function resume(call: RouteCall): Promise<unknown> {
  const runs = await call.runs()
  const { id } = await begin(call, () => runs.resume(idOf(call.params), call.body))
  return { runId: id }
}

async function cancel(call: RouteCall): Promise<unknown> {
  const who = operatorName(call)
  const runId = idOf(call.params)
  const answer = await (await call.runs()).cancel(runId, `${call.body.reason} (by ${who})`)
  return { runId, answer }
}

async function fork(call: RouteCall): Promise<unknown> {
  const { environment } = call.pawl.internals
  const { journal } = await call.runs()
  const { at: seq, runId = environment.ids.next() } = call.body
  await forkRun(journal, { from: idOf(call.params), seq, runId }, environment)
  return { runId }
}

async function link(call: RouteCall): Promise<unknown> {
  const runId = idOf(call.params)
  const { commit } = call.body
  await (await call.runs()).linkCommit(runId, commit)
  return { runId, commit }
}

async function listDefinitions({ runs }: RouteCall): Promise<unknown> {
  const { definitions } = await runs()
  const items = [...definitions.values()].map(({ name: own, machine: { machine } }) => {
    return { name: own, machine: machine.name, version: machine.version }
  })
  return { items }
}

const ROOT = '/api/v1/runs'

export const routes: readonly Route[] = [
  {
    method: 'GET',
    path: '/api/v1/run-definitions',
    operation: 'listRunDefinitions',
    summary: 'Lists the definitions of runs that this server can start and resume.',
    roles: ['read', 'operate'],
    answer: record({
      items: list(record({ name: text(), machine: text(), version: { type: 'integer' } })),
    }),
    run: listDefinitions,
  },
  {
    method: 'POST',
    path: ROOT,
    operation: 'startRun',
    summary: 'Starts a run, which this server then works on. Answers when the run is durable.',
    roles: OPERATE,
    body: record(
      { definition: name('the name of the definition') },
      {
        input: anything('its input as JSON; null if absent'),
        runId: name('the id of the run; generated if absent'),
        orResume: flag('resume the run if it already exists; needs runId'),
      },
    ),
    status: 201,
    errors: [404, 409],
    answer: record({ runId: text() }),
    run: start,
  },
  {
    method: 'POST',
    path: `${ROOT}/{id}/resume`,
    operation: 'resumeRun',
    summary: 'Continues a run, which this server then works on. Finished items are not repeated.',
    roles: OPERATE,
    body: record(
      {},
      {
        force: list(name(), { maxItems: ITEMS_MAX, description: 'run these work items again' }),
        strict: flag('also run items again whose inputs turn out to be unchanged'),
        paranoid: flag('read every input file and artifact'),
      },
    ),
    errors: [404, 409],
    answer: record({ runId: text() }),
    run: resume,
  },
  {
    method: 'POST',
    path: `${ROOT}/{id}/cancel`,
    operation: 'cancelRun',
    summary: 'Cancels a run, or asks the process that works on it.',
    roles: OPERATE,
    body: record(WHY, WHO),
    errors: [404, 409],
    answer: record({ runId: text(), answer: oneOf(['cancelled', 'requested']) }),
    run: cancel,
  },
  {
    method: 'POST',
    path: `${ROOT}/{id}/fork`,
    operation: 'forkRun',
    summary: 'Starts a run with the events of another run up to one of them.',
    roles: OPERATE,
    body: record(
      { at: count('the last shared event', 1, SEQ_MAX) },
      { runId: name('the id of the new run; generated if absent') },
    ),
    errors: [404, 409],
    answer: record({ runId: text() }),
    run: fork,
  },
  {
    method: 'POST',
    path: `${ROOT}/{id}/link`,
    operation: 'linkCommit',
    summary: 'Records that a commit of a repository belongs to a run.',
    roles: OPERATE,
    body: record({ commit: text('the full hash of the commit', { pattern: '^[0-9a-f]{40,64}$' }) }),
    errors: [404],
    answer: record({ runId: text(), commit: text() }),
    run: link,
  },
]
