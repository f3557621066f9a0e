// What a full check costs those who work: the rate of claims and settlements on a store with a
// million ended jobs, while the doctor looks at all of it in another process, against the same
// rate without it. Also how long a full check takes, and how much memory it holds.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createPawl, type Pawl } from 'pawl'
import { standard } from 'pawl/rules'
import { inFolder, type Result, resultOf, timed } from './measure.ts'
import { inDatabase, withServer } from './postgres-server.ts'

const JOBS = 1_000_000
const ROUNDS = 5
const TURN_MS = 2000
const BATCH = 100
const FILL = 500

const NAMES = {
  rate: (store: string) => `${store}: jobs a second during a full check`,
  memory: (store: string) => `${store}: MiB of the doctor, a million jobs against a tenth`,
  time: (store: string) => `${store}: seconds for a full check, a million against a tenth`,
}

type Store = Pawl['store']

/** Measures both kinds of store; a tenth of the jobs where it should be quick. */
export async function benchDoctor(options: { quick: boolean; only?: string }): Promise<Result[]> {
  const { quick, only = '' } = options
  const results: Result[] = []
  const jobs = quick ? JOBS / 10 : JOBS
  if ('sqlite'.includes(only) || only === '') {
    results.push(
      ...(await inFolder((folder) => measure('sqlite', `sqlite:${join(folder, 'jobs.db')}`, jobs))),
    )
  }
  if ('postgres'.includes(only) || only === '') {
    const own = (url: string) => inDatabase(url, (place) => measure('postgres', place, jobs))
    results.push(...(await withServer(own)))
  }
  return results
}

async function measure(kind: string, place: string, jobs: number): Promise<Result[]> {
  await using pawl = await createPawl({ store: place })
  const { store } = pawl
  await fill(store, jobs / 10)
  const small = await checked(place)
  await fill(store, jobs - jobs / 10)
  const large = await checked(place)
  const pairs: { pawl: number; reference: number }[] = []
  for (let round = 0; round <= ROUNDS; round++) {
    const turns = [() => undisturbed(store), () => disturbed(store, place)]
    const [first, second] = round % 2 === 0 ? turns : turns.toReversed()
    const figures = [await first?.(), await second?.()] as [number, number]
    const [reference, own] = round % 2 === 0 ? figures : figures.toReversed()
    if (round > 0) pairs.push({ pawl: own as number, reference: reference as number })
  }
  return [
    resultOf(NAMES.rate(kind), pairs),
    resultOf(NAMES.memory(kind), [{ pawl: large.rssMiB, reference: small.rssMiB }]),
    resultOf(NAMES.time(kind), [{ pawl: large.seconds, reference: small.seconds }]),
  ]
}

let number = 0

async function enqueue(store: Store, count: number): Promise<void> {
  const items = Array.from({ length: count }, () => ({
    lifecycle: standard,
    command: {
      jobId: `00000000-0000-7000-8000-${(++number).toString(16).padStart(12, '0')}`,
      type: 'mail',
      queue: 'mail',
    },
    input: `{"to":"ann@example.org","n":${number}}`,
  }))
  await store.enqueue(items)
}

const REQUEST = { worker: 'worker-1', leaseMs: 600_000, start: true }

/** Takes jobs to their ends, `batch` at a time, until there are none or the time is over. */
async function drain(store: Store, batch: number, until: number): Promise<number> {
  const next = { ...REQUEST, limit: batch }
  let held = await store.claim(next)
  let done = 0
  while (held.length > 0) {
    done += held.length
    const settlements = held.map((one) => {
      const { attempt, execution } = one.job
      const fence = { attempt, claim: execution?.claim as string }
      return { held: one, command: { kind: 'commit', fence } as const, payload: '"sent"' }
    })
    const isOver = performance.now() > until
    held = [...(await store.settle(settlements, isOver ? undefined : next)).claimed]
  }
  return done
}

async function fill(store: Store, count: number): Promise<void> {
  process.stderr.write(`Filling the store: ${count} jobs…\n`)
  for (let done = 0; done < count; done += FILL * 20) {
    for (let i = 0; i < 20; i++) await enqueue(store, FILL)
    await drain(store, FILL, Number.POSITIVE_INFINITY)
  }
}

/** Jobs a second. Those to be worked on are enqueued beforehand. */
async function undisturbed(store: Store): Promise<number> {
  for (let i = 0; i < 320; i++) await enqueue(store, FILL)
  let done = 0
  const ms = await timed(async () => {
    done = await drain(store, BATCH, performance.now() + TURN_MS)
  })
  if (ms < TURN_MS) throw new Error('There were not enough jobs for the whole turn')
  await drain(store, FILL, Number.POSITIVE_INFINITY)
  return (done / ms) * 1000
}

async function disturbed(store: Store, place: string): Promise<number> {
  const doctor = startDoctor(place, 'again')
  // It says so when it has looked at its first jobs.
  await once(doctor.stdout as NonNullable<ChildProcess['stdout']>, 'data')
  try {
    return await undisturbed(store)
  } finally {
    doctor.kill('SIGKILL')
    await once(doctor, 'exit')
  }
}

function startDoctor(place: string, how: 'once' | 'again'): ChildProcess {
  const program = fileURLToPath(import.meta.resolve('./doctor-load.js'))
  return spawn(process.execPath, [program, place, how], { stdio: ['ignore', 'pipe', 'inherit'] })
}

/** How long one full check takes, and the most memory that its process has held. */
async function checked(place: string): Promise<{ seconds: number; rssMiB: number }> {
  const doctor = startDoctor(place, 'once')
  let text = ''
  doctor.stdout?.on('data', (chunk) => {
    text += chunk
  })
  const [code] = await once(doctor, 'exit')
  if (code !== 0) throw new Error(`The doctor ended with ${code}`)
  return JSON.parse(text.trim().split('\n').at(-1) as string)
}
