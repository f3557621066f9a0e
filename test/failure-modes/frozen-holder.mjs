// A process that holds one job for each verb of a holder, and is then frozen. Woken up, it knows of
// nothing and tries them all; it tells what it was answered.
import { createPawl } from 'pawl'

const LATE = '"late"'
const failure = { class: 'retryable', kind: 'error', message: 'late' }

/** What a holder can ask for, by the type of the job on which it does. */
const settlements = {
  start: { kind: 'start' },
  step: { kind: 'step', name: 'late', n: 1 },
  settle: { kind: 'commit' },
  fail: { kind: 'fail', failure },
  'fail for good': { kind: 'fail', failure: { ...failure, class: 'terminal', kind: 'terminal' } },
  release: { kind: 'release' },
  suspend: { kind: 'suspend', runAt: 4_000_000_000_000 },
  cancel: { kind: 'cancel' },
}

let pawl
let leaseMs
const holding = new Map()

const fenceOf = ({ job }) => ({ attempt: job.attempt, claim: job.execution.claim })
const codeOf = (answer) => (answer.kind === 'rejected' ? answer.error.code : answer.kind)

async function hold(store, types, lease) {
  pawl = await createPawl({ store })
  leaseMs = lease
  for (const type of types) {
    const request = { worker: 'frozen', types: [type], limit: 1, leaseMs, start: type !== 'start' }
    const [held] = await pawl.store.claim(request)
    holding.set(type, held)
  }
  return [...holding].map(([type, held]) => [type, held.job.attempt])
}

async function tryVerb(type, held) {
  const command = settlements[type]
  if (command !== undefined) {
    const settlement = { held, command: { ...command, fence: fenceOf(held) }, payload: LATE }
    const { answers } = await pawl.store.settle([settlement])
    return codeOf(answers[0])
  }
  if (type === 'commit') {
    let ran = 0
    const answer = await pawl.store.commit(held, async (tx) => {
      ran++
      await tx.query(`INSERT INTO bookings (job, attempt) VALUES ('${held.job.id}', 1)`)
      return LATE
    })
    return `${codeOf(answer)}, ran ${ran} times`
  }
  const beat = { ref: held.ref, fence: fenceOf(held) }
  const told = type === 'progress' ? { ...beat, progress: LATE } : beat
  const { lost } = await pawl.store.heartbeat([told], leaseMs)
  return lost.length === 1 && lost[0] === held.ref ? 'lost' : 'renewed'
}

async function tryAll() {
  const answers = []
  for (const [type, held] of holding) answers.push([type, await tryVerb(type, held)])
  await pawl.close()
  return Object.fromEntries(answers)
}

process.on('disconnect', () => process.exit(1))
process.on('message', async ({ store, types, leaseMs: lease }) => {
  process.send(store === undefined ? await tryAll() : await hold(store, types, lease))
})
