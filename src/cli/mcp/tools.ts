/** The tools of `pawl mcp`. They read; with an operator, one of them changes jobs. */
import { name, oneOf, text, uuid } from '../../core/checks.ts'
import { CommandInvalid, JobNotFound } from '../../core/errors.ts'
import { checkFields, type FieldChecks } from '../../core/fields.ts'
import type { Pawl } from '../../engine/pawl.ts'
import { readFlow } from '../../http/flow-view.ts'
import { PayloadRules, SECRET_KEYS } from '../../http/payloads.ts'
import type { JobFilter } from '../../stores/contract/store.ts'
import type { Tool } from './protocol.ts'

const LIST_MAX = 100
const PAGE = { limit: LIST_MAX }
const FACTS_MAX = 200
const FINDINGS_MAX = 100
const PAYLOAD_MAX = 4096
const NOTE_MAX = 2000
/** Verbs that take only a job and a reason. */
const VERBS = ['retry', 'redrive', 'cancel'] as const

type Verb = (typeof VERBS)[number]

const ID = { type: 'string', description: 'the id of the job' }
const TEXT = { type: 'string' }

function schema(properties: object, required: readonly string[] = []): object {
  return { type: 'object', properties, required, additionalProperties: false }
}

/** Returns the tools; `operator` is the name under which changes are recorded, if any. */
export function toolsOf(pawl: Pawl, operator: string | undefined): readonly Tool[] {
  return [...readingTools(pawl), ...(operator === undefined ? [] : [actTool(pawl, operator)])]
}

function readingTools(pawl: Pawl): readonly Tool[] {
  return [
    {
      name: 'list_jobs',
      description: `Lists up to ${LIST_MAX} jobs, newest first. All conditions must match.`,
      inputSchema: schema({
        ...{ type: TEXT, queue: TEXT, state: TEXT, error: TEXT, flow: TEXT },
        lane: { enum: ['ready', 'waiting', 'held', 'parked', 'delivering', 'ended'] },
        outcome: { enum: ['succeeded', 'failed', 'cancelled'] },
      }),
      run: (input) => listJobs(pawl, input as JobFilter),
    },
    {
      name: 'show_job',
      description: 'Shows a job: its row, its facts, and its input and result without secrets.',
      inputSchema: schema({ id: ID }, ['id']),
      run: (input) => showJob(pawl, idOf(input)),
    },
    {
      name: 'explain_job',
      description: 'Says why a job is not running, and which command would change that.',
      inputSchema: schema({ id: ID }, ['id']),
      run: async (input) => {
        const id = idOf(input)
        await jobOf(pawl, id)
        return pawl.explain(id)
      },
    },
    {
      name: 'show_flow',
      description: 'Shows a flow or batch: progress, what waits for what, and the critical path.',
      inputSchema: schema({ id: { ...ID, description: 'the id of the flow or batch' } }, ['id']),
      run: (input) => showFlow(pawl, idOf(input)),
    },
    {
      name: 'stats',
      description: 'Counts jobs by lane, and lists queues, workers, and flows with a parked job.',
      inputSchema: schema({}),
      run: (input) => stats(pawl, input),
    },
    {
      name: 'doctor_plan',
      description: 'Checks the promises on the data, and says what a repair would do. No change.',
      inputSchema: schema({}),
      run: (input) => doctorPlan(pawl, input),
    },
  ]
}

function actTool(pawl: Pawl, operator: string): Tool {
  const checks: FieldChecks<{ id: string; verb: string; reason: string }> = {
    id: uuid,
    verb: (value: string) => oneOf(value, VERBS),
    reason: (value: string) => text(value, NOTE_MAX),
  }
  return {
    name: 'act_on_job',
    description: 'Changes one job. The ledger records the operator and the reason.',
    inputSchema: schema({ id: ID, verb: { enum: VERBS }, reason: TEXT }, ['id', 'verb', 'reason']),
    run: async (input) => {
      const given = input as { id: string; verb: Verb; reason: string }
      checkFields(given, checks, { what: 'arguments' })
      for (const field of ['id', 'verb', 'reason'] as const) {
        if (given[field] === undefined) throw new CommandInvalid(field, 'must not be empty')
      }
      const { id, verb, reason } = given
      return pawl.operator({ name: operator, reason })[verb](id)
    },
  }
}

async function listJobs(pawl: Pawl, filter: JobFilter): Promise<unknown> {
  const jobs = []
  for await (const job of pawl.jobs.list(filter, { limit: LIST_MAX })) {
    const { id, type, queue, state, attempt, outcome, createdAt, error } = job
    const at = new Date(createdAt).toISOString()
    jobs.push({ id, type, queue, state, attempt, outcome, createdAt: at, error: error?.message })
  }
  return { jobs, complete: jobs.length < LIST_MAX }
}

async function showJob(pawl: Pawl, id: string): Promise<unknown> {
  const { store } = pawl
  const rules = new PayloadRules(SECRET_KEYS, PAYLOAD_MAX)
  const job = await jobOf(pawl, id)
  const facts = await store.facts(id)
  const texts = await store.payloads(id)
  const view = (stored: string | undefined) => (stored === undefined ? null : rules.view(stored))
  return {
    job,
    input: view(texts?.input),
    result: view(texts?.result),
    factCount: facts.length,
    facts: facts.slice(-FACTS_MAX),
  }
}

async function stats(pawl: Pawl, input: object): Promise<unknown> {
  checkFields(input, {}, { what: 'arguments' })
  const { lanes, ended } = await pawl.store.counts()
  const queues = (await pawl.queues.list()).slice(0, LIST_MAX)
  const workers = (await pawl.workers.list()).slice(0, LIST_MAX)
  const { items: parkedFlows } = await pawl.store.flows.list({ state: 'attention' }, PAGE)
  return { lanes, ended, queues, workers, parkedFlows }
}

/** The graph, in which nodes of a large flow are folded. */
async function showFlow(pawl: Pawl, id: string): Promise<unknown> {
  const { flow, progress, graph } = await readFlow(pawl, id)
  return { flow, progress, ...graph }
}

async function doctorPlan(pawl: Pawl, input: object): Promise<unknown> {
  checkFields(input, {}, { what: 'arguments' })
  const report = await pawl.doctor().check({ full: true })
  const { findings, repairs, ...counts } = report
  return {
    ...counts,
    findings: findings.slice(0, FINDINGS_MAX),
    repairs: repairs.slice(0, FINDINGS_MAX),
  }
}

function idOf(input: Readonly<Record<string, unknown>>): string {
  const given = input as { id: string }
  checkFields(given, { id: name }, { what: 'arguments' })
  const why = uuid(given.id)
  if (why !== undefined) throw new CommandInvalid('id', why)
  return given.id
}

async function jobOf({ store }: Pawl, id: string) {
  const job = await store.get(id)
  if (job === undefined) throw new JobNotFound(id)
  return job
}
