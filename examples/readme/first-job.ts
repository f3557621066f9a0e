import { checkFacts, standard } from 'pawl/rules'
import { JobScript } from 'pawl/testing'

const script = new JobScript(standard) // a job in memory, under a clock that you move
script.create({ type: 'invoice', queue: 'billing' })
script.claim({ worker: 'worker-a', leaseMs: 30_000 })
const late = script.fence

script.clock.advance(30_000) // worker-a freezes past its lease
script.tell({ kind: 'expire', fence: late })
script.clock.advance(2_000)
script.tell({ kind: 'due' })
script.claim({ worker: 'worker-b' })

script.tell({ kind: 'commit', fence: late }) // rejected: E_STALE_FENCE, nothing changed
script.tell({ kind: 'commit', fence: script.fence }) // the one commit that this job will ever have

script.job.state // 'succeeded'
checkFacts(standard, script.facts) // []: every promise about these facts holds
