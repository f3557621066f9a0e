// A worker process of the tests. It tells by messages what its handlers and its worker meet, and it
// stops as a service does: SIGTERM closes Pawl, a second SIGTERM does not wait for handlers any more.
// Nothing calls `exit`: what keeps a closed Pawl alive would keep the process alive as well.
import { createPawl, defineJob } from 'pawl'
import { systemEnvironment } from 'pawl/sqlite'

const { store, waits, dieAt, diesWhileStopping, ...options } = JSON.parse(process.argv[2])
const placeholders = store.startsWith('postgres') ? '$1, $2' : '?, ?'

const say = (message) => {
  if (process.connected) process.send(message)
}

let isStopping = false

/** A place where the process may have to die. */
const reach = (point) => {
  if (point === dieAt && (isStopping || !diesWhileStopping)) process.kill(process.pid, 'SIGKILL')
}

/** What the test lets go on, mostly jobs by their ids; it may do so before anybody waits for it. */
const orders = new Map()
const order = (what) => {
  if (!orders.has(what)) {
    let give
    const given = new Promise((resolve) => {
      give = resolve
    })
    orders.set(what, { give, given })
  }
  return orders.get(what)
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** Resolves when the attempt is aborted, having said why. */
const abortOf = ({ jobId, attempt, signal }) =>
  new Promise((resolve) => {
    signal.addEventListener('abort', () => {
      say({ kind: 'aborted', jobId, attempt, code: signal.reason.code })
      resolve()
    })
  })

/** One row of the user's own, written with the commit. */
const book = ({ jobId, attempt, commit }) =>
  commit(async (tx) => {
    await tx.query(`INSERT INTO bookings (job, attempt) VALUES (${placeholders})`, [jobId, attempt])
    return { attempt }
  })

const jobs = {
  /** Ends its first attempt when it is aborted or when it is told to, in either way of ending. */
  async outlast(context) {
    const { input, jobId, attempt } = context
    say({ kind: 'started', jobId, attempt })
    const aborted = abortOf(context)
    if (attempt === 1) await (input.after === 'abort' ? aborted : order(jobId).given)
    if (input.by === 'return') return { attempt }
    try {
      return await book(context)
    } catch (error) {
      say({ kind: 'refused', jobId, attempt, code: error.code })
      await aborted
      throw error
    }
  },

  /** Goes on until it is told to end, or is aborted. */
  async wait(context) {
    const { input, jobId, attempt, signal, progress } = context
    say({ kind: 'started', jobId, attempt })
    const aborted = abortOf(context).then(() => {
      if (!input?.stubborn) throw signal.reason
      return order(jobId).given
    })
    if (input?.progress !== undefined) progress(input.progress)
    await Promise.race([order(jobId).given, aborted])
    return { attempt }
  },

  /** Stops the event loop. */
  hog({ input, jobId, attempt }) {
    say({ kind: 'started', jobId, attempt })
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, input.ms)
    return { attempt }
  },

  async book(context) {
    reach('handler')
    await pause(context.input.ms)
    return book(context)
  },

  poison() {
    process.kill(process.pid, 'SIGKILL')
  },

  echo({ input, jobId, attempt }) {
    say({ kind: 'started', jobId, attempt })
    return input
  },
}

process.on('message', (message) => order(message.order).give())
const orphaned = () => process.exit(1)
process.on('disconnect', orphaned)

const pawl = await createPawl({
  store,
  // Only where it is needed: with an environment that is not its own, no thread renews leases.
  ...(dieAt !== undefined && { environment: { ...systemEnvironment(), crashPoint: reach } }),
  jobs: Object.entries(jobs).map(([name, run]) => defineJob({ name, run })),
})
say({ kind: 'open' })
if (waits) await order('work').given
const worker = await pawl.work({
  ...options,
  onEvent: (event) => {
    if (event.type === 'state' && event.slot === 'idle') say({ kind: 'state', state: event.to })
    else if (event.type === 'lost') say({ kind: 'lost', jobId: event.job.id })
  },
})

process.on('SIGTERM', () => {
  if (isStopping) {
    void worker.stop()
    return
  }
  isStopping = true
  void pawl.close().then(() => {
    process.off('disconnect', orphaned)
    process.disconnect()
  })
})
say({ kind: 'working' })
