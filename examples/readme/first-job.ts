import { checkFacts, standard } from 'pawl/rules'
import { JobScript } from 'pawl/testing'

const script = new JobScript(standard) // a job in memory, under a clock that you move
script.create({ type: 'invoice', queue: 'billing' })
script.claim({ worker: 'worker-a', leaseMs: 30_000 })
const late = script.fence

script.clock.advance(30_000) // worker-a freezes past its lease
script.applyCommand({ kind: 'expire', fence: late })
script.clock.advance(2_000)
script.applyCommand({ kind: 'due' })
script.claim({ worker: 'worker-b' })

script.applyCommand({ kind: 'commit', fence: late }) // rejected: E_STALE_FENCE, nothing changed
script.applyCommand({ kind: 'commit', fence: script.fence }) // the only commit of this job

script.job.state // 'succeeded'
checkFacts(standard, script.facts) // []: every promise about these facts holds
