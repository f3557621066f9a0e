/**
 * The kinds of job of a run: plain ones, commits with a row of the user's own in four lifecycles,
 * steps, effects, failures that pass and failures that do not, slow ones, and ones that ignore
 * their signal. `hardened` is left out: after a crash it waits for a minute, which is most of a
 * short run.
 */
import {
  type Delivery,
  defineJob,
  type JobContext,
  type JobDefinition,
  Retryable,
  Terminal,
  typed,
} from 'pawl'
import { document, leased, task } from 'pawl/rules'
import { EFFECT, LEASE_MS, sleep, TABLE } from './settings.ts'

/** What every job is given: how long it works, and how often it fails before that. */
export interface Input {
  readonly ms: number
  readonly failures: number
}

const input = typed<Input>()
const retry = { max: 20, delay: '100ms', jitter: 0.5 } as const
const patient = { input, retry, crashesMax: 1000 } as const

type Context = JobContext<Input, Record<string, (delivery: Delivery) => unknown>>

/** How often each kind is enqueued, out of all. */
const WEIGHTS: Readonly<Record<string, number>> = {
  plain: 20,
  books: 20,
  'books-leased': 6,
  'books-task': 6,
  'books-document': 6,
  'books-late': 5,
  stepper: 12,
  sends: 16,
  flaky: 6,
  slow: 4,
  deaf: 2,
  hopeless: 2,
  fragile: 4,
}
const SUM = Object.values(WEIGHTS).reduce((sum, weight) => sum + weight, 0)

/** The kinds whose commits write a row of the user's own. */
export function writesRow(type: string): boolean {
  return type.startsWith('books') || type === 'sends'
}

/** A kind by a number from [0, 1). */
export function kindAt(chance: number): string {
  let left = chance * SUM
  for (const [kind, weight] of Object.entries(WEIGHTS)) {
    left -= weight
    if (left < 0) return kind
  }
  return 'plain'
}

/** The definitions by name; steps and effects are told to the receiver. */
export function jobsOf(store: string, receiver: string): JobDefinition<Input, Input, unknown>[] {
  const values = store.startsWith('postgres') ? '$1, $2' : '?, ?'
  const insert = `INSERT INTO ${TABLE} (job, attempt) VALUES (${values})`
  const books = async ({ input, jobId, attempt, commit }: Context, mails = 0) => {
    await sleep(input.ms)
    return commit(async (tx) => {
      await tx.query(insert, [jobId, attempt])
      for (let n = 0; n < mails; n++) tx.effect(EFFECT, { n })
      return { attempt }
    })
  }
  const fails = ({ input, attempt }: Context) => {
    if (attempt <= input.failures) throw new Retryable(`failure ${attempt}`)
  }
  return [
    defineJob({ ...patient, name: 'plain', run: ({ input }) => input.ms }),
    defineJob({ ...patient, name: 'books', run: (context) => books(context as Context) }),
    // These budgets are the lifecycles' own.
    defineJob({
      input,
      name: 'books-leased',
      lifecycle: leased,
      run: (own) => books(own as Context),
    }),
    defineJob({ input, name: 'books-task', lifecycle: task, run: (own) => books(own as Context) }),
    defineJob({
      ...{ input, name: 'books-document', lifecycle: document },
      run: (own) => books(own as Context),
    }),
    // A worker that is stopped in the middle of it wakes up while another works on it.
    defineJob({
      ...{ ...patient, name: 'books-late' },
      async run(own) {
        await sleep(LEASE_MS)
        return books(own as Context)
      },
    }),
    stepperOf(receiver, fails),
    defineJob({
      ...patient,
      name: 'sends',
      effects: { [EFFECT]: mailTo(receiver) },
      run: (own) => books(own as Context, 1 + own.input.failures),
    }),
    defineJob({ ...patient, name: 'flaky', run: (own) => fails(own as Context) }),
    ...troublesome(),
  ]
}

/** Delivers to the receiver, which refuses now and then. */
function mailTo(receiver: string) {
  return {
    timeout: '2s',
    retry: { max: 1000, backoff: 'fixed', delay: '200ms' },
    deliver: ({ key, signal }: Delivery) => post(`${receiver}/effects`, { key }, signal),
  } as const
}

function stepperOf(receiver: string, fails: (context: Context) => void) {
  return defineJob({
    ...patient,
    name: 'stepper',
    async run(own) {
      const { jobId, attempt, step, signal } = own
      for (const name of ['first', 'second']) {
        await step(name, async () => {
          await post(`${receiver}/steps`, { job: jobId, name, attempt }, signal)
          if (name === 'second') fails(own as Context)
          return attempt
        })
      }
    },
  })
}

/** Kinds that give a worker trouble. */
function troublesome() {
  return [
    defineJob({
      ...patient,
      name: 'slow',
      async run({ signal, progress }) {
        for (let part = 0; part < 10; part++) {
          progress({ part })
          await sleep(LEASE_MS / 5)
          signal.throwIfAborted()
        }
      },
    }),
    defineJob({
      ...{ input, name: 'deaf', retry: { ...retry, max: 2 }, timeout: '700ms' },
      run: ({ input }) => sleep(400 + input.ms * 10),
    }),
    defineJob({
      ...{ input, name: 'hopeless' },
      run: () => {
        throw new Terminal('there is no hope')
      },
    }),
    // With the default budgets, so that crashes can use them up; operators redrive it.
    defineJob({ input, name: 'fragile', run: ({ input }) => sleep(input.ms * 10) }),
  ]
}

async function post(url: string, body: unknown, signal: AbortSignal): Promise<void> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body), signal })
  await response.arrayBuffer()
  if (!response.ok) throw new Retryable(`answered ${response.status}`)
}
