/** Who uses the engine in the simulation: clients that enqueue, an operator who meddles. */
import type { JobHandle, Operator, Pawl, RunnableJob } from 'pawl'
import { findLifecycle } from 'pawl/rules'
import { judgeReport } from './clinic.ts'
import type { Vandal } from './damage.ts'
import type { Faults } from './faults.ts'
import type { History } from './history.ts'
import type { Plan } from './jobs.ts'
import type { SimLimits } from './limits.ts'
import { EVERY_LIFECYCLE } from './parcels.ts'
import type { SimProcess } from './process.ts'

/** A process that people work with. */
export interface Desk {
  readonly process: SimProcess
  readonly pawl: Pawl
  readonly jobs: readonly RunnableJob<{ n: number }, { n: number }, unknown>[]
  readonly vandal: Vandal
  readonly limits: SimLimits | undefined
}

/** Every fifth job is enqueued together with an order of the client's own. */
export const isOrdered = (n: number) => n % 5 === 0

/** Enqueues one job, and again, until it is acknowledged or its process dies. */
export async function enqueueOne(
  desk: Desk,
  n: number,
  { type, delayMs, deadlineMs }: Plan,
  history: History,
): Promise<void> {
  const { process, jobs } = desk
  const definition = jobs.find(({ name }) => name === type)
  if (definition === undefined) throw new Error(`no job is named ${type}`)
  for (;;) {
    try {
      const deadline = deadlineMs && { deadline: new Date(desk.pawl.store.now() + deadlineMs) }
      const options = { key: `job ${n}`, delay: delayMs, ...deadline }
      const handle = await (isOrdered(n)
        ? enqueueWithOrder(desk, definition, n, options)
        : desk.pawl.enqueue(definition, { n }, options))
      history.acknowledge(type, n, handle.id)
      if (n % 3 === 0) void awaitResult(handle, history)
      return
    } catch (error) {
      history.expectTyped(error)
      await new Promise<void>((resolve) => process.environment.timers.after(500, resolve))
    }
  }
}

/** A job and an order of the client's own that names it, in one transaction. */
function enqueueWithOrder(
  { pawl, process }: Desk,
  definition: Desk['jobs'][number],
  n: number,
  options: { readonly key: string; readonly delay: number; readonly deadline?: Date },
): Promise<JobHandle> {
  return pawl.transaction(async (tx) => {
    const jobId = process.environment.ids.next()
    await tx.query('INSERT INTO sim_orders (job) VALUES (?)', [jobId])
    const handle = await pawl.enqueue(definition, { n }, { ...options, jobId, tx })
    // An earlier call was acknowledged, or its answer was lost: the job has its order.
    if (handle.id !== jobId) await tx.query('DELETE FROM sim_orders WHERE job = ?', [jobId])
    return handle
  })
}

async function awaitResult(handle: JobHandle, history: History): Promise<void> {
  try {
    const { kind } = await handle.result()
    if (kind === 'succeeded') history.succeeded.add(handle.id)
  } catch (error) {
    history.expectTyped(error)
  }
}

/** Does what the seed wants of an operator now. */
export async function meddle(
  { pawl, process, vandal, limits }: Desk,
  faults: Faults,
  history: History,
): Promise<void> {
  const operator = pawl.operator({ name: 'ada', reason: 'to see what happens' })
  const ids = [...history.acknowledged.keys()]
  const waiting = ids.filter((id) => history.acknowledged.get(id) === 'approved')
  const one = () => ids[faults.between(0, ids.length)] as string
  const acts: (() => Promise<unknown>)[] = [() => operator.approve({ ids: waiting })]
  const now = process.environment.clock.now()
  const may = (kind: Parameters<Faults['strikes']>[0], act: () => Promise<unknown>) => {
    if (ids.length > 0 && faults.strikes(kind)) acts.push(act)
  }
  may('cancel', () => operator.cancel(one()))
  may('redrive', () => operator.retry(one()))
  may('quarantine', () => operator.quarantine(one()))
  may('discard', () => operator.discard(one()))
  may('force', () => forceSomewhere(pawl, one(), faults))
  may('reschedule', () => operator.reschedule(one(), new Date(now + faults.between(0, 30_000))))
  // A queue is paused from one visit to the next.
  if (history.isQueuePaused) acts.push(() => resume(operator, history))
  else may('pause-queue', () => pause(operator, history))
  may('retry-effects', () => operator.retryEffects({ filter: { state: 'parked' } }))
  // It frees the keys of what it removes; in these seeds they are kept.
  const isKeeping = history.keepsKeys
  may('prune', async () => {
    const before = now - faults.between(0, 10_000)
    if (!isKeeping) await prune(pawl, before, history)
  })
  if (limits !== undefined) acts.push(() => limits.meddle(operator, faults.areOver))
  may('row-damaged', () => vandal.damage(one()))
  if (history.isExamined) {
    acts.push(async () => vandal.isGuilty || examineAll(pawl, history))
  }
  for (const act of acts) {
    try {
      await act()
    } catch (error) {
      history.expectTyped(error)
    }
  }
}

/** Whatever goes wrong meanwhile, the doctor sees no promise broken. */
async function examineAll(pawl: Pawl, history: History): Promise<void> {
  history.judged.push(...judgeReport(await pawl.doctor().check({ full: true })))
}

/** Asked for is as good as done, for the answer may be lost. */
async function pause(operator: Operator, history: History): Promise<void> {
  history.isQueuePaused = true
  await operator.pauseQueue('default')
}

async function resume(operator: Operator, history: History): Promise<void> {
  await operator.resumeQueue('default')
  history.isQueuePaused = false
}

/** Into a state that a person may force a job into, and out of which it finds its way. */
async function forceSomewhere(pawl: Pawl, id: string, faults: Faults): Promise<void> {
  const job = await pawl.store.get(id)
  if (job === undefined) return
  const { roles } = findLifecycle(job.lifecycle, job.lifecycleVersion, EVERY_LIFECYCLE)
  const targets = [...roles].filter(([, role]) => FORCED.includes(role)).map(([state]) => state)
  const to = targets[faults.between(0, targets.length)] as string
  await pawl.operator({ name: 'ada', reason: 'to see what happens' }).force(id, to)
}

const FORCED: readonly string[] = ['ready', 'parked', 'failed', 'cancelled']

async function prune(pawl: Pawl, endedBefore: number, history: History): Promise<void> {
  const archive = async (lines: string) => void history.archive(lines)
  await pawl.store.prune({ endedBefore, limit: 5, archive })
}
