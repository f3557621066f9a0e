/** Generated from the routes of the HTTP API: npm run docs:generate. */
// biome-ignore-all format: generated
export type Problem = {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly code: string
  readonly hint: string
  readonly from?: string
  readonly to?: string
  readonly allowed?: readonly (string)[]
}

export type Payload = {
  readonly bytes: number
  readonly truncated: boolean
  readonly text: string
}

export type Job = {
  readonly id: string
  readonly type: string
  readonly queue: string
  readonly lifecycle: string
  readonly lifecycleVersion: number
  readonly tags: readonly (string)[]
  readonly key: string | null
  readonly limitKey: string | null
  readonly retryOf: string | null
  readonly timeoutMs: number | null
  readonly deadlineAt: number | null
  readonly policy: Readonly<Record<string, unknown>> | null
  readonly state: string
  readonly seq: number
  readonly attempt: number
  readonly failures: number
  readonly crashes: number
  readonly releases: number
  readonly priority: number
  readonly aheadMs: number
  readonly runAt: number | null
  readonly createdAt: number
  readonly startedAt: number | null
  readonly endedAt: number | null
  readonly updatedAt: number
  readonly outcome: string | null
  readonly reason: string | null
  readonly error: {
    readonly message: string
    readonly kind: string
    readonly type: 'RETRYABLE' | 'TERMINAL'
    readonly name?: string
    readonly code?: string
    readonly fingerprint?: string
  } | null
  readonly blockedReason: string | null
  readonly stalled: boolean
  readonly execution: {
    readonly status: 'LEASED' | 'IN_PROGRESS' | 'COMMITTED' | 'DONE' | 'ABORTED'
    readonly claim: string
    readonly worker: string
    readonly leaseUntil: number
  } | null
  readonly flow: string | null
  readonly node: number | null
  readonly links: number
}

export type Lane = 'idle' | 'waiting' | 'ready' | 'held' | 'parked' | 'ended' | 'delivering' | 'blocked'

export type Fact = {
  readonly version: number
  readonly jobId: string
  readonly seq: number
  readonly at: number
  readonly trigger: 'create' | 'submit' | 'schedule' | 'due' | 'reschedule' | 'run-now' | 'prioritise' | 'replace' | 'migrate' | 'arrive' | 'claim' | 'start' | 'step' | 'signal' | 'receive' | 'commit' | 'done' | 'retry' | 'fail' | 'give-up' | 'reject' | 'expire' | 'release' | 'suspend' | 'exhaust' | 'stall' | 'wait' | 'cancel' | 'park' | 'redrive' | 'discard' | 'force' | 'repair'
  readonly from: string | null
  readonly to: string
  readonly actor: 'worker' | 'client' | 'engine' | 'doctor' | 'operator'
  readonly via?: readonly (string)[]
  readonly operator?: string
  readonly reason?: string
  readonly note?: string
  readonly created?: Readonly<Record<string, unknown>>
  readonly rebased?: Readonly<Record<string, unknown>>
  readonly migrated?: {
    readonly from: number
    readonly to: number
  }
  readonly execution?: Readonly<Record<string, unknown>>
  readonly spends?: string
  readonly resets?: boolean
  readonly outcome?: string
  readonly runAt?: number | null
  readonly delayAsked?: boolean
  readonly priority?: number
  readonly aheadMs?: number
  readonly error?: {
    readonly message: string
    readonly kind: string
    readonly type: 'RETRYABLE' | 'TERMINAL'
    readonly name?: string
    readonly code?: string
    readonly fingerprint?: string
  } | null
  readonly thrown?: Readonly<Record<string, unknown>>
  readonly blockedReason?: string | null
  readonly stalled?: boolean
  readonly step?: {
    readonly name: string
    readonly n: number
  }
  readonly after?: Readonly<Record<string, unknown>>
  readonly as?: string
  readonly links?: number
  readonly dependency?: string
  readonly effects?: number
  readonly signal?: {
    readonly name: string
    readonly key: string
  }
  readonly wait?: Wait
  readonly received?: {
    readonly for: 'sleep' | 'signal' | 'children'
    readonly name: string
    readonly n: number
    readonly signal?: number
  }
  readonly timing?: {
    readonly queueMs: number
    readonly durationMs: number
  }
  readonly usage?: Readonly<Record<string, number>>
  readonly metadata?: Readonly<Record<string, string>>
  readonly traceId?: string
  readonly spanId?: string
  readonly traceFlags?: number
  readonly traceState?: string
}

export type Signal = {
  readonly seq: number
  readonly at: number
  readonly name: string
  readonly key: string
  readonly payload: Payload
  readonly by: string
  readonly note?: string
  readonly receivedBy?: number
}

export type Wait = {
  readonly for: 'sleep' | 'signal' | 'children'
  readonly name: string
  readonly n: number
  readonly until: number | null
  readonly children?: number
  readonly concurrency?: number
  readonly abandons?: boolean
}

export type Execution = {
  readonly execId: string
  readonly jobId: string
  readonly attempt: number
  readonly leaseOwner: string
  readonly leaseExpiresAt: number
  readonly status: 'LEASED' | 'IN_PROGRESS' | 'COMMITTED' | 'DONE' | 'ABORTED'
  readonly startedAt: number | null
  readonly finishedAt: number | null
  readonly timing: {
    readonly queueMs: number
    readonly durationMs: number
  } | null
  readonly error: {
    readonly message: string
    readonly kind: string
    readonly type: 'RETRYABLE' | 'TERMINAL'
    readonly name?: string
    readonly code?: string
    readonly fingerprint?: string
  } | null
  readonly thrown: Readonly<Record<string, unknown>> | null
  readonly abort: string | null
  readonly final: boolean
}

export type Explanation = {
  readonly kind: string
  readonly says: string
  readonly command?: string
  readonly enqueuedBy?: string
  readonly schedule?: string
  readonly waitsFor?: readonly (string)[]
}

export type OperatorReport = {
  readonly dryRun: boolean
  readonly matched: number
  readonly done: number
  readonly same: number
  readonly asked: number
  readonly refused: number
  readonly refusals: readonly ({
    readonly id: string
    readonly code: string
    readonly message: string
    readonly hint: string
  })[]
  readonly sample: readonly (string)[]
  readonly copies: readonly ({
    readonly of: string
    readonly id: string
  })[]
  readonly more: boolean
  readonly ids?: readonly (string)[]
}

export type Effect = {
  readonly key: string
  readonly jobId: string
  readonly jobType: string
  readonly name: string
  readonly n: number
  readonly state: 'pending' | 'delivered' | 'parked'
  readonly tries: number
  readonly runAt: number
  readonly payload: Payload
  readonly claimed?: boolean
  readonly error?: string
}

export type Queue = {
  readonly name: string
  readonly lanes: {
    readonly idle: number
    readonly waiting: number
    readonly ready: number
    readonly held: number
    readonly parked: number
    readonly ended: number
    readonly delivering: number
    readonly blocked: number
  }
  readonly workers: number
  readonly readySince?: number
  readonly oldestReadyMs?: number
  readonly maxDepth?: number
  readonly maxWaitMs?: number
  readonly pausedAt?: number
  readonly pausedBy?: string
  readonly pauseReason?: string
}

export type QueueRecord = {
  readonly number: number
  readonly at: number
  readonly queue: string
  readonly action: 'pause' | 'resume' | 'limit'
  readonly actor: 'worker' | 'client' | 'engine' | 'doctor' | 'operator'
  readonly before: {
    readonly pausedAt: number | null
    readonly maxDepth: number | null
    readonly maxWaitMs: number | null
  }
  readonly after: {
    readonly pausedAt: number | null
    readonly maxDepth: number | null
    readonly maxWaitMs: number | null
  }
  readonly operator?: string
  readonly note?: string
}

export type Worker = {
  readonly id: string
  readonly state: string
  readonly activity: 'working' | 'idle' | 'draining' | 'gone'
  readonly startedAt: number
  readonly seenAt: number
  readonly live: boolean
  readonly running: number
  readonly concurrency: number
  readonly stuck: number
  readonly silent: readonly ({
    readonly job: string
    readonly attempt: number
    readonly since: number
  })[]
  readonly version?: string
  readonly queues?: readonly (string)[]
  readonly types?: readonly (string)[]
  readonly renewal?: 'thread' | 'timer'
  readonly renewalAdvice?: string
  readonly schedules?: readonly (string)[]
  readonly zoneData?: string
}

export type Examination = {
  readonly ok: boolean
  readonly complete: boolean
  readonly jobs: number
  readonly errors: number
  readonly warnings: number
  readonly notices: number
  readonly findings: readonly ({
    readonly check: string
    readonly promise: string
    readonly severity: 'error' | 'warning' | 'notice'
    readonly subject: string
    readonly what: string
    readonly evidence: Readonly<Record<string, unknown>>
    readonly remedy?: string
    readonly advice?: string
  })[]
  readonly repairs: readonly ({
    readonly subject: string
    readonly remedy: string
    readonly why: string
    readonly changes: readonly ({
      readonly column: string
      readonly from?: unknown
      readonly to?: unknown
    })[]
    readonly aside: number
    readonly factSeq?: number
  })[]
  readonly repairCount: number
}

export type Change = {
  readonly path: readonly (string)[]
  readonly before?: unknown
  readonly after?: unknown
}

export type Lanes = {
  readonly idle: number
  readonly waiting: number
  readonly ready: number
  readonly held: number
  readonly parked: number
  readonly ended: number
  readonly delivering: number
  readonly blocked: number
}

export type Gate = {
  readonly name: string
  readonly limit: string
  readonly kind: 'concurrency' | 'throttle'
  readonly used: number
  readonly max: number | null
  readonly blocked: number
  readonly key?: string
  readonly opensAt?: number
  readonly blockedSince?: number
}

export type Limit = {
  readonly name: string
  readonly limit: string
  readonly kind: 'concurrency' | 'throttle'
  readonly used: number
  readonly max: number | null
  readonly blocked: number
  readonly setting: {
    readonly name: string
    readonly max: number | null
    readonly periodMs: number | null
    readonly burst: number | null
    readonly version: number
    readonly override: number | null
    readonly declaredAt: number | null
    readonly overrideAt: number | null
    readonly overrideBy: string | null
    readonly overrideNote: string | null
  }
  readonly key?: string
  readonly opensAt?: number
  readonly blockedSince?: number
}

export type LimitDetails = {
  readonly name: string
  readonly limit: string
  readonly kind: 'concurrency' | 'throttle'
  readonly used: number
  readonly max: number | null
  readonly blocked: number
  readonly setting: {
    readonly name: string
    readonly max: number | null
    readonly periodMs: number | null
    readonly burst: number | null
    readonly version: number
    readonly override: number | null
    readonly declaredAt: number | null
    readonly overrideAt: number | null
    readonly overrideBy: string | null
    readonly overrideNote: string | null
  } | null
  readonly holders: readonly ({
    readonly id: string
    readonly type: string
    readonly worker: string
    readonly startedAt: number
    readonly leaseUntil: number
  })[]
  readonly records: readonly (LimitRecord)[]
  readonly key?: string
  readonly opensAt?: number
  readonly blockedSince?: number
}

export type LimitRecord = {
  readonly name: string
  readonly limit: string
  readonly number: number
  readonly at: number
  readonly action: 'declare' | 'set' | 'reset'
  readonly actor: 'worker' | 'client' | 'engine' | 'doctor' | 'operator'
  readonly before: {
    readonly max: number | null
    readonly periodMs: number | null
    readonly burst: number | null
    readonly version: number
    readonly override: number | null
  }
  readonly after: {
    readonly max: number | null
    readonly periodMs: number | null
    readonly burst: number | null
    readonly version: number
    readonly override: number | null
  }
  readonly key?: string
  readonly operator?: string
  readonly note?: string
}

export type Schedule = {
  readonly name: string
  readonly type: string | null
  readonly queue: string | null
  readonly input: Payload | null
  readonly timing: {
    readonly kind: 'cron'
    readonly cron: string
    readonly timezone: string
  } | {
    readonly kind: 'every'
    readonly everyMs: number
  } | null
  readonly overlap: 'skip' | 'bufferOne' | 'bufferAll' | 'cancelOther' | 'allowAll' | null
  readonly catchUp: {
    readonly mode: 'none' | 'latest' | 'all'
    readonly withinMs: number
  } | null
  readonly jitterMs: number | null
  readonly pauseOnFailure: boolean | null
  readonly origin: 'code' | 'program'
  readonly version: number
  readonly nextAt: number | null
  readonly buffered: readonly (number)[]
  readonly open: readonly (string)[]
  readonly lastTick: number | null
  readonly lastJob: string | null
  readonly pausedAt: number | null
  readonly pausedBy: string | null
  readonly pauseNote: string | null
  readonly createdAt: number
  readonly changedAt: number
}

export type ScheduleRecord = {
  readonly number: number
  readonly at: number
  readonly schedule: string
  readonly action: 'fired' | 'late' | 'skipped' | 'missed' | 'backfilled' | 'put' | 'pause' | 'resume' | 'run' | 'backfill' | 'remove'
  readonly actor: 'worker' | 'client' | 'engine' | 'doctor' | 'operator'
  readonly operator?: string
  readonly note?: string
  readonly tick?: number
  readonly lastTick?: number
  readonly ticks?: number
  readonly previous?: number
  readonly job?: string
  readonly reason?: string
  readonly before?: {
    readonly definition: Payload
    readonly input: Payload
    readonly origin: 'code' | 'program'
    readonly version: number
  } | {
    readonly about: Readonly<Record<string, unknown>>
  }
  readonly after?: {
    readonly definition: Payload
    readonly input: Payload
    readonly origin: 'code' | 'program'
    readonly version: number
  } | {
    readonly about: Readonly<Record<string, unknown>>
  }
}

export type RetentionReport = {
  readonly dryRun: boolean
  readonly removed: number
  readonly keys: number
  readonly classes: readonly ({
    readonly outcome: 'succeeded' | 'failed' | 'cancelled'
    readonly keepMs: number
    readonly removed: number
    readonly keys: number
    readonly types?: readonly (string)[]
  })[]
  readonly complete: boolean
}

export type Flow = {
  readonly id: string
  readonly kind: 'flow' | 'batch'
  readonly key: string | null
  readonly createdAt: number
  readonly size: number
  readonly callbacks: number
  readonly open: boolean
  readonly state: 'open' | 'attention' | 'done'
}

export type FlowProgress = {
  readonly members: number
  readonly succeeded: number
  readonly failed: number
  readonly cancelled: number
  readonly parked: number
  readonly live: number
}

export type FlowNode = {
  readonly n: number
  readonly job: Job
  readonly after: readonly ({
    readonly name: string
    readonly of: readonly (number | readonly (number)[])[] | 'members'
    readonly need: 'success' | 'end' | 'failure'
    readonly list: boolean
  })[]
  readonly onFailure: 'park' | 'cancel' | 'fail'
  readonly as?: string
  readonly releasedAt?: number
}

export type FlowGraph = {
  readonly flow: Flow
  readonly progress: FlowProgress
  readonly boxes: readonly ({
    readonly id: string
    readonly type: string
    readonly types: number
    readonly count: number
    readonly first: number
    readonly last: number
    readonly job: string | null
    readonly statuses: {
      readonly later?: number
      readonly waits?: number
      readonly scheduled?: number
      readonly ready?: number
      readonly running?: number
      readonly parked?: number
      readonly succeeded?: number
      readonly failed?: number
      readonly cancelled?: number
    }
    readonly releasedAt: number | null
    readonly startedAt: number | null
    readonly endedAt: number | null
    readonly critical: boolean
  })[]
  readonly edges: readonly ({
    readonly from: string
    readonly to: string
    readonly names: readonly (string)[]
    readonly needs: readonly ('success' | 'end' | 'failure')[]
    readonly count: number
    readonly open: number
    readonly failed: number
    readonly at: number | null
    readonly critical: boolean
  })[]
  readonly critical: readonly ({
    readonly n: number
    readonly job: string
    readonly type: string
    readonly status: 'later' | 'waits' | 'scheduled' | 'ready' | 'running' | 'parked' | 'succeeded' | 'failed' | 'cancelled'
    readonly releasedAt: number | null
    readonly startedAt: number | null
    readonly endedAt: number | null
  })[]
  readonly moments: readonly (number)[]
}

export type JobLinks = {
  readonly flow: Flow | null
  readonly parent: Job | null
  readonly after: readonly ({
    readonly name: string
    readonly need: 'success' | 'end' | 'failure'
    readonly list: boolean
    readonly ends: readonly ({
      readonly id: string
      readonly type: string
      readonly outcome: string | null
      readonly seq: number | null
      readonly error: {
        readonly message: string
        readonly kind: string
        readonly type: string
        readonly name?: string
        readonly code?: string
        readonly fingerprint?: string
      } | null
      readonly reason: string | null
      readonly result?: Payload
    })[]
  })[]
  readonly waitsFor: readonly (Job)[]
  readonly awaitedBy: readonly (Job)[]
  readonly children: readonly (FlowNode)[]
}

/** What each operation takes and returns. */
export interface Operations {
  /** Enqueues a job. It is durable when the answer arrives. */
  enqueueJob: {
    body: {
      readonly type: string
      readonly input?: unknown
      readonly queue?: string
      readonly lifecycle?: 'standard' | 'hardened' | 'leased' | 'document' | 'task'
      readonly delayMs?: number
      readonly runAt?: number
      readonly deadlineAt?: number
      readonly timeoutMs?: number
      readonly key?: string
      readonly onConflict?: 'existing' | 'replace' | 'reject'
      readonly priority?: number | {
        readonly aheadMs: number
      }
      readonly tags?: readonly (string)[]
      readonly hold?: boolean
      readonly id?: string
    }
    answer: {
      readonly id: string
      readonly created: boolean
      readonly state: string
    }
  }
  /** Enqueues jobs in one transaction: all of them, or none. */
  enqueueJobs: {
    body: {
      readonly jobs: readonly ({
        readonly type: string
        readonly input?: unknown
        readonly queue?: string
        readonly lifecycle?: 'standard' | 'hardened' | 'leased' | 'document' | 'task'
        readonly delayMs?: number
        readonly runAt?: number
        readonly deadlineAt?: number
        readonly timeoutMs?: number
        readonly key?: string
        readonly onConflict?: 'existing' | 'replace' | 'reject'
        readonly priority?: number | {
          readonly aheadMs: number
        }
        readonly tags?: readonly (string)[]
        readonly hold?: boolean
        readonly id?: string
      })[]
    }
    answer: {
      readonly jobs: readonly ({
        readonly id: string
        readonly created: boolean
        readonly state: string
      })[]
    }
  }
  /** Lists jobs, newest first. A job must match all conditions. */
  listJobs: {
    query: { state?: string; lane?: 'idle' | 'waiting' | 'ready' | 'held' | 'parked' | 'ended' | 'delivering' | 'blocked'; outcome?: 'succeeded' | 'failed' | 'cancelled' | 'parked'; stalled?: boolean; queue?: string; type?: string; tag?: string; key?: string; error?: string; waitsFor?: string; flow?: string; createdFrom?: number; createdBefore?: number; after?: string; limit?: number }
    answer: {
      readonly items: readonly (Job)[]
      readonly nextCursor: string | null
      readonly damaged?: readonly ({
        readonly id: string
        readonly lane: string
        readonly why: string
      })[]
    }
  }
  /** Shows a job with its attempts, its payloads and why it is in its state. */
  showJob: {
    params: { id: string }
    answer: {
      readonly job: Job
      readonly lane: Lane | null
      readonly executions: readonly (Execution)[]
      readonly explanation: Explanation
      readonly input: Payload | null
      readonly result: Payload | null
      readonly progress: Payload | null
    }
  }
  /** Lists the facts of a job: each step, who caused it, and why. */
  listJobFacts: {
    params: { id: string }
    query: { order?: 'oldest' | 'newest'; payloads?: boolean; after?: string; limit?: number }
    answer: {
      readonly items: readonly ({
        readonly pos: string
        readonly fact: Fact
        readonly payload?: Payload | null
      })[]
      readonly nextCursor: string | null
      readonly unreadable?: readonly ({
        readonly pos: string
        readonly jobId: string
        readonly seq: number
        readonly unreadable: string
      })[]
    }
  }
  /** Shows a job as it was after one of its facts. */
  showJobAt: {
    params: { id: string; seq: string }
    answer: {
      readonly job: Job
    }
  }
  /** Compares two states of a job. */
  diffJob: {
    params: { id: string }
    query: { from?: number; to?: number }
    answer: {
      readonly id: string
      readonly from: number
      readonly to: number
      readonly changes: readonly (Change)[]
    }
  }
  /** Says why a job is not running, and which command would change that. */
  explainJob: {
    params: { id: string }
    answer: Explanation
  }
  /** Downloads the input of a job as JSON, without secrets. */
  downloadInput: {
    params: { id: string }
    answer: string
  }
  /** Downloads the result of a job as JSON, without secrets. */
  downloadResult: {
    params: { id: string }
    answer: string
  }
  /** One job: make jobs ready that were enqueued with a hold. */
  submitJob: {
    params: { id: string }
    body: {
      readonly reason: string
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** Make jobs ready that were enqueued with a hold. */
  submitJobs: {
    body: {
      readonly reason: string
      readonly ids?: readonly (string)[]
      readonly filter?: {
        readonly state?: string
        readonly lane?: 'idle' | 'waiting' | 'ready' | 'held' | 'parked' | 'ended' | 'delivering' | 'blocked'
        readonly outcome?: 'succeeded' | 'failed' | 'cancelled' | 'parked'
        readonly stalled?: boolean
        readonly queue?: string
        readonly type?: string
        readonly tag?: string
        readonly key?: string
        readonly error?: string
        readonly waitsFor?: string
        readonly flow?: string
        readonly createdFrom?: number
        readonly createdBefore?: number
      }
      readonly all?: true
      readonly limit?: number
      readonly among?: readonly (string)[]
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** One job: run jobs again, in the way that their lifecycle allows. */
  retryJob: {
    params: { id: string }
    body: {
      readonly reason: string
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** Run jobs again, in the way that their lifecycle allows. */
  retryJobs: {
    body: {
      readonly reason: string
      readonly ids?: readonly (string)[]
      readonly filter?: {
        readonly state?: string
        readonly lane?: 'idle' | 'waiting' | 'ready' | 'held' | 'parked' | 'ended' | 'delivering' | 'blocked'
        readonly outcome?: 'succeeded' | 'failed' | 'cancelled' | 'parked'
        readonly stalled?: boolean
        readonly queue?: string
        readonly type?: string
        readonly tag?: string
        readonly key?: string
        readonly error?: string
        readonly waitsFor?: string
        readonly flow?: string
        readonly createdFrom?: number
        readonly createdBefore?: number
      }
      readonly all?: true
      readonly limit?: number
      readonly among?: readonly (string)[]
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** One job: enqueue copies of ended jobs, a new one with each call. */
  copyJob: {
    params: { id: string }
    body: {
      readonly reason: string
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** Enqueue copies of ended jobs, a new one with each call. */
  copyJobs: {
    body: {
      readonly reason: string
      readonly ids?: readonly (string)[]
      readonly filter?: {
        readonly state?: string
        readonly lane?: 'idle' | 'waiting' | 'ready' | 'held' | 'parked' | 'ended' | 'delivering' | 'blocked'
        readonly outcome?: 'succeeded' | 'failed' | 'cancelled' | 'parked'
        readonly stalled?: boolean
        readonly queue?: string
        readonly type?: string
        readonly tag?: string
        readonly key?: string
        readonly error?: string
        readonly waitsFor?: string
        readonly flow?: string
        readonly createdFrom?: number
        readonly createdBefore?: number
      }
      readonly all?: true
      readonly limit?: number
      readonly among?: readonly (string)[]
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** One job: cancel jobs; a running handler is aborted. */
  cancelJob: {
    params: { id: string }
    body: {
      readonly reason: string
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** Cancel jobs; a running handler is aborted. */
  cancelJobs: {
    body: {
      readonly reason: string
      readonly ids?: readonly (string)[]
      readonly filter?: {
        readonly state?: string
        readonly lane?: 'idle' | 'waiting' | 'ready' | 'held' | 'parked' | 'ended' | 'delivering' | 'blocked'
        readonly outcome?: 'succeeded' | 'failed' | 'cancelled' | 'parked'
        readonly stalled?: boolean
        readonly queue?: string
        readonly type?: string
        readonly tag?: string
        readonly key?: string
        readonly error?: string
        readonly waitsFor?: string
        readonly flow?: string
        readonly createdFrom?: number
        readonly createdBefore?: number
      }
      readonly all?: true
      readonly limit?: number
      readonly among?: readonly (string)[]
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** One job: park jobs until they are redriven or cancelled. */
  quarantineJob: {
    params: { id: string }
    body: {
      readonly reason: string
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** Park jobs until they are redriven or cancelled. */
  quarantineJobs: {
    body: {
      readonly reason: string
      readonly ids?: readonly (string)[]
      readonly filter?: {
        readonly state?: string
        readonly lane?: 'idle' | 'waiting' | 'ready' | 'held' | 'parked' | 'ended' | 'delivering' | 'blocked'
        readonly outcome?: 'succeeded' | 'failed' | 'cancelled' | 'parked'
        readonly stalled?: boolean
        readonly queue?: string
        readonly type?: string
        readonly tag?: string
        readonly key?: string
        readonly error?: string
        readonly waitsFor?: string
        readonly flow?: string
        readonly createdFrom?: number
        readonly createdBefore?: number
      }
      readonly all?: true
      readonly limit?: number
      readonly among?: readonly (string)[]
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** One job: run parked and failed jobs again, with fresh budgets. */
  redriveJob: {
    params: { id: string }
    body: {
      readonly reason: string
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** Run parked and failed jobs again, with fresh budgets. */
  redriveJobs: {
    body: {
      readonly reason: string
      readonly ids?: readonly (string)[]
      readonly filter?: {
        readonly state?: string
        readonly lane?: 'idle' | 'waiting' | 'ready' | 'held' | 'parked' | 'ended' | 'delivering' | 'blocked'
        readonly outcome?: 'succeeded' | 'failed' | 'cancelled' | 'parked'
        readonly stalled?: boolean
        readonly queue?: string
        readonly type?: string
        readonly tag?: string
        readonly key?: string
        readonly error?: string
        readonly waitsFor?: string
        readonly flow?: string
        readonly createdFrom?: number
        readonly createdBefore?: number
      }
      readonly all?: true
      readonly limit?: number
      readonly among?: readonly (string)[]
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** One job: end parked jobs as failed, without running them again. */
  discardJob: {
    params: { id: string }
    body: {
      readonly reason: string
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** End parked jobs as failed, without running them again. */
  discardJobs: {
    body: {
      readonly reason: string
      readonly ids?: readonly (string)[]
      readonly filter?: {
        readonly state?: string
        readonly lane?: 'idle' | 'waiting' | 'ready' | 'held' | 'parked' | 'ended' | 'delivering' | 'blocked'
        readonly outcome?: 'succeeded' | 'failed' | 'cancelled' | 'parked'
        readonly stalled?: boolean
        readonly queue?: string
        readonly type?: string
        readonly tag?: string
        readonly key?: string
        readonly error?: string
        readonly waitsFor?: string
        readonly flow?: string
        readonly createdFrom?: number
        readonly createdBefore?: number
      }
      readonly all?: true
      readonly limit?: number
      readonly among?: readonly (string)[]
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** One job: move jobs to a state without an edge. */
  forceJob: {
    params: { id: string }
    body: {
      readonly reason: string
      readonly state: string
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** Move jobs to a state without an edge. */
  forceJobs: {
    body: {
      readonly reason: string
      readonly state: string
      readonly ids?: readonly (string)[]
      readonly filter?: {
        readonly state?: string
        readonly lane?: 'idle' | 'waiting' | 'ready' | 'held' | 'parked' | 'ended' | 'delivering' | 'blocked'
        readonly outcome?: 'succeeded' | 'failed' | 'cancelled' | 'parked'
        readonly stalled?: boolean
        readonly queue?: string
        readonly type?: string
        readonly tag?: string
        readonly key?: string
        readonly error?: string
        readonly waitsFor?: string
        readonly flow?: string
        readonly createdFrom?: number
        readonly createdBefore?: number
      }
      readonly all?: true
      readonly limit?: number
      readonly among?: readonly (string)[]
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** One job: change the due time of jobs. */
  rescheduleJob: {
    params: { id: string }
    body: {
      readonly reason: string
      readonly runAt: number
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** Change the due time of jobs. */
  rescheduleJobs: {
    body: {
      readonly reason: string
      readonly runAt: number
      readonly ids?: readonly (string)[]
      readonly filter?: {
        readonly state?: string
        readonly lane?: 'idle' | 'waiting' | 'ready' | 'held' | 'parked' | 'ended' | 'delivering' | 'blocked'
        readonly outcome?: 'succeeded' | 'failed' | 'cancelled' | 'parked'
        readonly stalled?: boolean
        readonly queue?: string
        readonly type?: string
        readonly tag?: string
        readonly key?: string
        readonly error?: string
        readonly waitsFor?: string
        readonly flow?: string
        readonly createdFrom?: number
        readonly createdBefore?: number
      }
      readonly all?: true
      readonly limit?: number
      readonly among?: readonly (string)[]
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** One job: change the priority of jobs; smaller numbers are claimed first. */
  prioritiseJob: {
    params: { id: string }
    body: {
      readonly reason: string
      readonly priority: number | {
        readonly aheadMs: number
      }
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** Change the priority of jobs; smaller numbers are claimed first. */
  prioritiseJobs: {
    body: {
      readonly reason: string
      readonly priority: number | {
        readonly aheadMs: number
      }
      readonly ids?: readonly (string)[]
      readonly filter?: {
        readonly state?: string
        readonly lane?: 'idle' | 'waiting' | 'ready' | 'held' | 'parked' | 'ended' | 'delivering' | 'blocked'
        readonly outcome?: 'succeeded' | 'failed' | 'cancelled' | 'parked'
        readonly stalled?: boolean
        readonly queue?: string
        readonly type?: string
        readonly tag?: string
        readonly key?: string
        readonly error?: string
        readonly waitsFor?: string
        readonly flow?: string
        readonly createdFrom?: number
        readonly createdBefore?: number
      }
      readonly all?: true
      readonly limit?: number
      readonly among?: readonly (string)[]
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** One job: approve jobs that wait for an approval, and the recovery of stalled jobs. */
  approveJob: {
    params: { id: string }
    body: {
      readonly reason: string
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** Approve jobs that wait for an approval, and the recovery of stalled jobs. */
  approveJobs: {
    body: {
      readonly reason: string
      readonly ids?: readonly (string)[]
      readonly filter?: {
        readonly state?: string
        readonly lane?: 'idle' | 'waiting' | 'ready' | 'held' | 'parked' | 'ended' | 'delivering' | 'blocked'
        readonly outcome?: 'succeeded' | 'failed' | 'cancelled' | 'parked'
        readonly stalled?: boolean
        readonly queue?: string
        readonly type?: string
        readonly tag?: string
        readonly key?: string
        readonly error?: string
        readonly waitsFor?: string
        readonly flow?: string
        readonly createdFrom?: number
        readonly createdBefore?: number
      }
      readonly all?: true
      readonly limit?: number
      readonly among?: readonly (string)[]
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** One job: reject jobs that wait for an approval. */
  rejectJob: {
    params: { id: string }
    body: {
      readonly reason: string
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** Reject jobs that wait for an approval. */
  rejectJobs: {
    body: {
      readonly reason: string
      readonly ids?: readonly (string)[]
      readonly filter?: {
        readonly state?: string
        readonly lane?: 'idle' | 'waiting' | 'ready' | 'held' | 'parked' | 'ended' | 'delivering' | 'blocked'
        readonly outcome?: 'succeeded' | 'failed' | 'cancelled' | 'parked'
        readonly stalled?: boolean
        readonly queue?: string
        readonly type?: string
        readonly tag?: string
        readonly key?: string
        readonly error?: string
        readonly waitsFor?: string
        readonly flow?: string
        readonly createdFrom?: number
        readonly createdBefore?: number
      }
      readonly all?: true
      readonly limit?: number
      readonly among?: readonly (string)[]
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** Sends a signal to a job. It is durable when the answer arrives. */
  sendSignal: {
    params: { id: string }
    body: {
      readonly name: string
      readonly key?: string
      readonly payload?: unknown
      readonly reason?: string
      readonly operator?: string
    }
    answer: {
      readonly kind: 'sent' | 'same'
      readonly key: string
      readonly job: {
        readonly id: string
        readonly state: string
      }
    }
  }
  /** Lists the signals of a job in the order in which they were sent. */
  listSignals: {
    params: { id: string }
    query: { after?: string; limit?: number }
    answer: {
      readonly items: readonly (Signal)[]
      readonly nextCursor: string | null
      readonly waitsFor?: Wait | null
    }
  }
  /** Lists flows and batches, newest first. */
  listFlows: {
    query: { state?: 'open' | 'attention' | 'done'; kind?: 'flow' | 'batch'; key?: string; progress?: boolean; after?: string; limit?: number }
    answer: {
      readonly items: readonly ({
        readonly flow: Flow
        readonly progress: FlowProgress | null
      })[]
      readonly nextCursor: string | null
    }
  }
  /** Shows a flow or batch, and how far it is. */
  showFlow: {
    params: { id: string }
    answer: {
      readonly flow: Flow
      readonly progress: FlowProgress
    }
  }
  /** Lists the jobs of a flow by number, with what each waits for. */
  listFlowNodes: {
    params: { id: string }
    query: { at?: number; after?: string; limit?: number }
    answer: {
      readonly items: readonly (FlowNode)[]
      readonly nextCursor: string | null
    }
  }
  /** Shows a flow as a graph with times and its critical path. */
  showFlowGraph: {
    params: { id: string }
    query: { at?: number }
    answer: FlowGraph
  }
  /** Shows how far a batch is. */
  showBatch: {
    params: { id: string }
    answer: {
      readonly flow: Flow
      readonly progress: FlowProgress
    }
  }
  /** Shows what connects a job with others. */
  showJobLinks: {
    params: { id: string }
    answer: JobLinks
  }
  /** Cancels all jobs of a flow that have not ended, and closes an open batch. */
  cancelFlow: {
    params: { id: string }
    body: {
      readonly reason: string
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** Redrives the failed and parked jobs of a flow; what waits for them then goes on. */
  redriveFlow: {
    params: { id: string }
    body: {
      readonly reason: string
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: OperatorReport
  }
  /** Adds members to an open batch, all of them or none. */
  addToBatch: {
    params: { id: string }
    body: {
      readonly members: readonly ({
        readonly type: string
        readonly input?: unknown
        readonly queue?: string
        readonly lifecycle?: 'standard' | 'hardened' | 'leased' | 'document' | 'task'
        readonly priority?: number | {
          readonly aheadMs: number
        }
        readonly tags?: readonly (string)[]
      })[]
      readonly at?: number
    }
    answer: {
      readonly flow: Flow
      readonly jobs: readonly ({
        readonly id: string
        readonly state: string
      })[]
    }
  }
  /** Closes a batch: its callbacks run when all members have ended. */
  closeBatch: {
    params: { id: string }
    body: Record<string, never>
    answer: {
      readonly flow: Flow
    }
  }
  /** Says what a token of a signal asks for. It changes nothing. */
  showToken: {
    params: { token: string }
    answer: {
      readonly state: 'open' | 'used' | 'ended'
      readonly signal: string
      readonly to: string | null
      readonly expiresAt: number
      readonly job: {
        readonly id: string
        readonly type: string
        readonly key: string | null
      }
      readonly schema: unknown
    }
  }
  /** Sends the signal that a token allows. It is durable when the answer arrives. */
  useToken: {
    params: { token: string }
    body: {
      readonly payload?: unknown
    }
    answer: {
      readonly kind: 'sent'
      readonly signal: string
    }
  }
  /** Lists jobs that wait for a signal or an approval, the longest wait first. */
  showInbox: {
    query: { waitsFor?: string; type?: string; limit?: number }
    answer: {
      readonly items: readonly ({
        readonly job: {
          readonly id: string
          readonly type: string
          readonly queue: string
          readonly key: string | null
          readonly tags: readonly (string)[]
        }
        readonly signal: string
        readonly n: number
        readonly isApproval: boolean
        readonly since: number
        readonly until: number | null
        readonly schema: unknown
        readonly input: Payload | null
      })[]
      readonly total: number
      readonly more: boolean
    }
  }
  /** Lists effects of jobs, newest first. */
  listEffects: {
    query: { state?: 'pending' | 'delivered' | 'parked'; jobId?: string; type?: string; after?: string; limit?: number }
    answer: {
      readonly items: readonly (Effect)[]
      readonly nextCursor: string | null
    }
  }
  /** Delivers parked effects again, or those that wait for their next try. */
  retryEffects: {
    body: {
      readonly reason: string
      readonly keys?: readonly (string)[]
      readonly filter?: {
        readonly state?: 'pending' | 'delivered' | 'parked'
        readonly jobId?: string
        readonly type?: string
      }
      readonly limit?: number
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: {
      readonly dryRun: boolean
      readonly matched: number
      readonly done: number
      readonly same: number
      readonly refused: number
      readonly refusals: readonly ({
        readonly key: string
        readonly code: string
        readonly message: string
        readonly hint: string
      })[]
      readonly sample: readonly (string)[]
      readonly more: boolean
      readonly keys?: readonly (string)[]
    }
  }
  /** Lists queues: jobs by lane, oldest ready job, workers, pauses and limits. */
  listQueues: {
    answer: {
      readonly items: readonly (Queue)[]
    }
  }
  /** Lists changes of queues, newest first: who, when and why. */
  listQueueRecords: {
    query: { queue?: string; after?: string; limit?: number }
    answer: {
      readonly items: readonly (QueueRecord)[]
      readonly nextCursor: string | null
    }
  }
  /** Shows a queue with its last changes. */
  showQueue: {
    params: { queue: string }
    answer: {
      readonly queue: Queue
      readonly records: readonly (QueueRecord)[]
    }
  }
  /** Pauses a queue: no jobs are claimed; running jobs continue. */
  pauseQueue: {
    params: { queue: string }
    body: {
      readonly reason: string
      readonly operator?: string
    }
    answer: {
      readonly changed: boolean
      readonly record: QueueRecord | null
    }
  }
  /** Resumes a paused queue. */
  resumeQueue: {
    params: { queue: string }
    body: {
      readonly reason: string
      readonly operator?: string
    }
    answer: {
      readonly changed: boolean
      readonly record: QueueRecord | null
    }
  }
  /** Limits how many jobs may be ready in a queue, and for how long. */
  limitQueue: {
    params: { queue: string }
    body: {
      readonly reason: string
      readonly operator?: string
      readonly maxDepth?: number | null
      readonly maxWaitMs?: number | null
    }
    answer: {
      readonly changed: boolean
      readonly record: QueueRecord | null
    }
  }
  /** Lists limits and throttles, and keys that an operator has set, by name. */
  listLimits: {
    query: { after?: string; limit?: number }
    answer: {
      readonly items: readonly (Limit)[]
      readonly nextCursor: string | null
    }
  }
  /** Lists limits and keys of limits that jobs use now, by name. */
  listGates: {
    query: { name?: string; waiting?: boolean; after?: string; limit?: number }
    answer: {
      readonly items: readonly (Gate)[]
      readonly nextCursor: string | null
    }
  }
  /** Lists changes of limits, newest first: who, when and why. */
  listLimitRecords: {
    query: { name?: string; key?: string; after?: string; limit?: number }
    answer: {
      readonly items: readonly (LimitRecord)[]
      readonly nextCursor: string | null
    }
  }
  /** Shows a limit or one key of it: use, jobs that hold it, and the last changes. */
  showLimit: {
    params: { limit: string }
    query: { key?: string }
    answer: LimitDetails
  }
  /** Compares with the ledger: were ever more jobs run than the limit allowed? */
  auditLimit: {
    params: { limit: string }
    query: { key?: string; since?: number }
    answer: {
      readonly limit: string
      readonly from: number
      readonly until: number
      readonly complete: boolean
      readonly claims: number
      readonly curve: readonly ({
        readonly from: number
        readonly peak: number
      })[]
      readonly violations: readonly ({
        readonly at: number
        readonly gate: string
        readonly jobId: string
        readonly used: number
        readonly max: number
      })[]
      readonly violationCount: number
      readonly key?: string
      readonly peak?: {
        readonly used: number
        readonly at: number
        readonly gate: string
      }
    }
  }
  /** Sets how many jobs may run under a limit or one key of it; 0 pauses it. */
  setLimit: {
    params: { limit: string }
    body: {
      readonly reason: string
      readonly concurrency: number
      readonly operator?: string
      readonly dryRun?: boolean
      readonly key?: string
    }
    answer: {
      readonly dryRun: boolean
      readonly changed: boolean
      readonly limit: string
      readonly before: number | null
      readonly after: number | null
      readonly max: number | null
      readonly used: number
      readonly blocked: number
      readonly starts: number | null
      readonly record: LimitRecord | null
    }
  }
  /** Removes the number that an operator has set: the number in the code counts again. */
  resetLimit: {
    params: { limit: string }
    body: {
      readonly reason: string
      readonly operator?: string
      readonly dryRun?: boolean
      readonly key?: string
    }
    answer: {
      readonly dryRun: boolean
      readonly changed: boolean
      readonly limit: string
      readonly before: number | null
      readonly after: number | null
      readonly max: number | null
      readonly used: number
      readonly blocked: number
      readonly starts: number | null
      readonly record: LimitRecord | null
    }
  }
  /** Lists schedules by name: job type, timing, next and last tick, pauses. */
  listSchedules: {
    query: { after?: string; limit?: number }
    answer: {
      readonly items: readonly (Schedule)[]
      readonly nextCursor: string | null
    }
  }
  /** Lists each tick with its result and each change with its operator, newest first. */
  listScheduleRecords: {
    query: { schedule?: string; kind?: 'tick' | 'change'; after?: string; limit?: number }
    answer: {
      readonly items: readonly (ScheduleRecord)[]
      readonly nextCursor: string | null
    }
  }
  /** Shows a schedule with its next ticks and its last records. */
  showSchedule: {
    params: { schedule: string }
    answer: {
      readonly schedule: Schedule
      readonly next: readonly (number)[]
      readonly records: readonly (ScheduleRecord)[]
    }
  }
  /** Lists the next ticks of a schedule. A paused schedule makes no jobs of them. */
  listNextTicks: {
    params: { schedule: string }
    query: { limit?: number }
    answer: {
      readonly items: readonly (number)[]
    }
  }
  /** Stores a schedule. A changed one counts from now; a paused one stays paused. */
  putSchedule: {
    params: { schedule: string }
    body: {
      readonly reason: string
      readonly type: string
      readonly operator?: string
      readonly dryRun?: boolean
      readonly queue?: string
      readonly lifecycle?: 'standard' | 'hardened' | 'leased' | 'document' | 'task'
      readonly input?: unknown
      readonly cron?: string
      readonly timezone?: string
      readonly everyMs?: number
      readonly overlap?: 'skip' | 'bufferOne' | 'bufferAll' | 'cancelOther' | 'allowAll'
      readonly catchUp?: {
        readonly mode: 'none' | 'latest' | 'all'
        readonly withinMs?: number
      }
      readonly jitterMs?: number
      readonly pauseOnFailure?: boolean
    }
    answer: {
      readonly dryRun: boolean
      readonly changed: boolean
      readonly schedule: Schedule | null
    }
  }
  /** Pauses a schedule: its ticks make no jobs, and are missed. */
  pauseSchedule: {
    params: { schedule: string }
    body: {
      readonly reason: string
      readonly operator?: string
    }
    answer: {
      readonly changed: boolean
      readonly record: ScheduleRecord | null
    }
  }
  /** Resumes a paused schedule, from now on. */
  resumeSchedule: {
    params: { schedule: string }
    body: {
      readonly reason: string
      readonly operator?: string
    }
    answer: {
      readonly changed: boolean
      readonly record: ScheduleRecord | null
    }
  }
  /** Makes a job of a schedule now, also if another one is open. */
  runScheduleNow: {
    params: { schedule: string }
    body: {
      readonly reason: string
      readonly operator?: string
    }
    answer: {
      readonly job: string | null
      readonly record: ScheduleRecord
    }
  }
  /** Makes up for ticks that have passed without a job, at most 1000. */
  backfillSchedule: {
    params: { schedule: string }
    body: {
      readonly reason: string
      readonly from: number
      readonly operator?: string
      readonly dryRun?: boolean
      readonly to?: number
      readonly overlap?: 'bufferAll' | 'allowAll'
    }
    answer: {
      readonly dryRun: boolean
      readonly ticks: readonly (number)[]
      readonly existing: readonly (number)[]
      readonly jobs: readonly (string)[]
    }
  }
  /** Removes a schedule; its jobs and its records stay. */
  removeSchedule: {
    params: { schedule: string }
    body: {
      readonly reason: string
      readonly operator?: string
    }
    answer: {
      readonly record: ScheduleRecord
    }
  }
  /** Counts ended jobs that are old enough to be removed. Removes nothing. */
  readRetention: {
    query: { succeededMs?: number; failedMs?: number; cancelledMs?: number; keysMs?: number; type?: string }
    answer: {
      readonly active: boolean
      readonly due: RetentionReport
      readonly old: number
      readonly keys: number
    }
  }
  /** Removes ended jobs that are older than their times, now. */
  runRetention: {
    body: {
      readonly reason: string
      readonly operator?: string
      readonly dryRun?: boolean
      readonly succeededMs?: number
      readonly failedMs?: number
      readonly cancelledMs?: number
      readonly keysMs?: number
      readonly types?: readonly (string)[]
    }
    answer: RetentionReport
  }
  /** Lists runs by id, from their snapshots. */
  listRuns: {
    query: { order?: 'oldest' | 'newest'; after?: string; limit?: number }
    answer: {
      readonly items: readonly ({
        readonly runId: string
        readonly state: unknown
        readonly machine: unknown
        readonly events: unknown
        readonly items: number
        readonly finished: number
        readonly openIssues: number
      })[]
      readonly nextCursor: string | null
    }
  }
  /** Shows a run from its whole log, and who holds it. */
  showRun: {
    params: { id: string }
    answer: {
      readonly run: Readonly<Record<string, unknown>>
      readonly holder: Readonly<Record<string, unknown>> | null
      readonly cancelRequest: Readonly<Record<string, unknown>> | null
      readonly damage: Readonly<Record<string, unknown>> | null
      readonly tornBytes: number
    }
  }
  /** Lists the events of a run in order. */
  listRunEvents: {
    params: { id: string }
    query: { from?: number; limit?: number }
    answer: {
      readonly items: readonly (Readonly<Record<string, unknown>>)[]
      readonly nextFrom: unknown
    }
  }
  /** Shows a run as it was after one of its events. */
  showRunAt: {
    params: { id: string; seq: string }
    answer: {
      readonly run: Readonly<Record<string, unknown>>
    }
  }
  /** Compares two states of a run. */
  diffRun: {
    params: { id: string }
    query: { from?: number; to?: number }
    answer: {
      readonly runId: string
      readonly from: number
      readonly to: number
      readonly changes: readonly (Change)[]
    }
  }
  /** Explains which work items a resume would run again, and why. */
  explainRun: {
    params: { id: string }
    query: { strict?: boolean; paranoid?: boolean }
    answer: Readonly<Record<string, unknown>>
  }
  /** Checks log, chain, schemas, snapshot and artifacts of a run. Changes nothing. */
  verifyRun: {
    params: { id: string }
    answer: {
      readonly ok: boolean
      readonly findings: readonly ({
        readonly kind: 'log' | 'tail' | 'snapshot' | 'artifact' | 'lease'
        readonly severity: 'error' | 'notice'
        readonly message: string
        readonly details: Readonly<Record<string, unknown>>
      })[]
    }
  }
  /** Lists the artifacts of a run by name. */
  listArtifacts: {
    params: { id: string }
    query: { stale?: boolean; after?: string; limit?: number }
    answer: {
      readonly items: readonly ({
        readonly name: string
        readonly path: string
        readonly sha256: string
        readonly schema_id: string | null
        readonly writer_worker: string
        readonly ts: string
        readonly work_item: string | null
        readonly stale_because: string | null
      })[]
      readonly nextCursor: string | null
    }
  }
  /** Downloads an artifact of a run. */
  downloadArtifact: {
    params: { id: string; artifact: string }
    query: { sha256?: string }
    answer: string
  }
  /** Shows the beginning of an artifact as text; secrets in JSON are replaced. */
  showArtifact: {
    params: { id: string; artifact: string }
    query: { sha256?: string; limit?: number }
    answer: {
      readonly sha256: string
      readonly bytes: number
      readonly truncated: boolean
      readonly text: string | null
    }
  }
  /** Lists the work items of a run by name. */
  listWorkItems: {
    params: { id: string }
    query: { status?: 'started' | 'finished' | 'failed'; after?: string; limit?: number }
    answer: {
      readonly items: readonly ({
        readonly name: string
        readonly status: 'started' | 'finished' | 'failed'
        readonly attempts: number
        readonly inputs: Readonly<Record<string, string>>
        readonly declared: readonly (string)[]
        readonly code: string | null
        readonly worker: string
        readonly started_at: string
        readonly finished_at: string | null
        readonly error: string | null
      })[]
      readonly nextCursor: string | null
    }
  }
  /** Lists the issues of a run by name. */
  listIssues: {
    params: { id: string }
    query: { status?: 'open' | 'resolved'; after?: string; limit?: number }
    answer: {
      readonly items: readonly ({
        readonly name: string
        readonly status: 'open' | 'resolved'
        readonly severity: 'blocker' | 'error' | 'warning'
        readonly message: string
        readonly opened_at: string
        readonly resolved_at: string | null
      })[]
      readonly nextCursor: string | null
    }
  }
  /** Downloads a run as one file: its events and every version of its artifacts. */
  exportRun: {
    params: { id: string }
    answer: string
  }
  /** Stores a run from a bundle. The bundle must fit into the body of a request. */
  importRun: {
    body: {
      readonly bundle: string
    }
    answer: {
      readonly runId: string
    }
  }
  /** Lists the definitions of runs that this server can start and resume. */
  listRunDefinitions: {
    answer: {
      readonly items: readonly ({
        readonly name: string
        readonly machine: string
        readonly version: number
      })[]
    }
  }
  /** Starts a run, which this server then works on. Answers when the run is durable. */
  startRun: {
    body: {
      readonly definition: string
      readonly input?: unknown
      readonly runId?: string
      readonly orResume?: boolean
    }
    answer: {
      readonly runId: string
    }
  }
  /** Continues a run, which this server then works on. Finished items are not repeated. */
  resumeRun: {
    params: { id: string }
    body: {
      readonly force?: readonly (string)[]
      readonly strict?: boolean
      readonly paranoid?: boolean
    }
    answer: {
      readonly runId: string
    }
  }
  /** Cancels a run, or asks the process that works on it. */
  cancelRun: {
    params: { id: string }
    body: {
      readonly reason: string
      readonly operator?: string
    }
    answer: {
      readonly runId: string
      readonly answer: 'cancelled' | 'requested'
    }
  }
  /** Starts a run with the events of another run up to one of them. */
  forkRun: {
    params: { id: string }
    body: {
      readonly at: number
      readonly runId?: string
    }
    answer: {
      readonly runId: string
    }
  }
  /** Records that a commit of a repository belongs to a run. */
  linkCommit: {
    params: { id: string }
    body: {
      readonly commit: string
    }
    answer: {
      readonly runId: string
      readonly commit: string
    }
  }
  /** Counts, rates and times for an overview, and what needs a person. */
  readOverview: {
    answer: {
      readonly now: number
      readonly lanes: Lanes
      readonly ended: Readonly<Record<string, number>>
      readonly oldestReadyMs: number | null
      readonly queueCount: number
      readonly queues: readonly (Queue)[]
      readonly workers: {
        readonly live: number
        readonly running: number
        readonly concurrency: number
        readonly gone: number
      }
      readonly recent: {
        readonly windowMs: number
        readonly facts: number
        readonly enqueued: number
        readonly started: number
        readonly retried: number
        readonly succeeded: number
        readonly failed: number
        readonly cancelled: number
        readonly waitMs: {
          readonly count: number
          readonly p50: number
          readonly p95: number
          readonly p99: number
        } | null
        readonly runMs: {
          readonly count: number
          readonly p50: number
          readonly p95: number
          readonly p99: number
        } | null
      }
      readonly attention: {
        readonly parkedJobs: number
        readonly parkedEffects: number
        readonly stalledJobs: number
        readonly stuckHandlers: number
        readonly pausedQueues: number
        readonly unservedQueues: number
        readonly missedTicks: number
        readonly parkedFlows: number
        readonly longBlocked: readonly ({
          readonly limit: string
          readonly kind: 'concurrency' | 'throttle'
          readonly blocked: number
          readonly forMs: number
          readonly key?: string
        })[]
      }
    }
  }
  /** Sends a message for each new fact of the ledger, until the client disconnects. */
  streamFacts: {
    query: { job?: string; after?: string }
    answer: string
  }
  /** Says that the process answers. */
  isAlive: {
    answer: {
      readonly status: string
    }
  }
  /** Says that the store is migrated and answers; 503 otherwise. */
  isReady: {
    answer: {
      readonly status: string
    }
  }
  /** Measurements of this process and of the store, for Prometheus. */
  readMetrics: {
    answer: string
  }
  /** This document. */
  readDocument: {
    answer: Readonly<Record<string, unknown>>
  }
  /** Says under which name and with which roles the caller acts. */
  whoAmI: {
    answer: {
      readonly name: string
      readonly roles: readonly (string)[]
    }
  }
  /** Lists workers of all processes, also those that are gone. */
  listWorkers: {
    answer: {
      readonly items: readonly (Worker)[]
    }
  }
  /** Counts jobs by lane and by final state, queues and live workers. */
  readStats: {
    answer: {
      readonly now: number
      readonly lanes: Lanes
      readonly ended: Readonly<Record<string, number>>
      readonly queues: number
      readonly paused: number
      readonly workers: number
    }
  }
  /** Lists the machines: lifecycles, and those of executions, workers and runs. */
  listMachines: {
    query: { kind?: 'job' | 'execution' | 'worker' | 'run' }
    answer: {
      readonly items: readonly ({
        readonly name: string
        readonly kind: 'job' | 'execution' | 'worker' | 'run'
        readonly version: number
        readonly states: number
        readonly edges: number
      })[]
    }
  }
  /** Shows the states and edges of a machine. */
  showMachine: {
    params: { name: string }
    query: { version?: number; kind?: 'job' | 'execution' | 'worker' | 'run' }
    answer: {
      readonly name: string
      readonly kind: 'job' | 'execution' | 'worker' | 'run'
      readonly version: number
      readonly initial: string
      readonly states: Readonly<Record<string, Readonly<Record<string, unknown>>>>
      readonly edges: readonly (Readonly<Record<string, unknown>>)[]
    }
  }
  /** Migrates live jobs of earlier versions to a version of their lifecycle. */
  migrateJobs: {
    params: { name: string }
    body: {
      readonly reason: string
      readonly to: number
      readonly operator?: string
      readonly dryRun?: boolean
    }
    answer: {
      readonly dryRun: boolean
      readonly matched: number
      readonly done: number
      readonly running: number
      readonly refused: number
      readonly moves: readonly ({
        readonly from: {
          readonly version: number
          readonly state: string
        }
        readonly to: {
          readonly version: number
          readonly state: string
        }
        readonly jobs: number
      })[]
      readonly refusals: readonly ({
        readonly id: string
        readonly code: string
        readonly message: string
        readonly hint: string
      })[]
      readonly more: boolean
    }
  }
  /** Checks the store against every promise, for two seconds or in full. */
  checkStore: {
    body: {
      readonly full?: boolean
    }
    answer: Examination
  }
  /** Checks everything, and reports what a repair would change. Changes nothing. */
  planRepair: {
    body: Record<string, never>
    answer: Examination
  }
  /** Repairs the store, and checks it again. */
  repairStore: {
    body: {
      readonly reason: string
      readonly operator?: string
    }
    answer: {
      readonly repaired: Examination
      readonly after: Examination
    }
  }
  /** Lists facts of all jobs: each step, who caused it, and why. */
  listFacts: {
    query: { jobId?: string; actor?: 'worker' | 'client' | 'engine' | 'doctor' | 'operator'; operator?: string; worker?: string; trigger?: 'create' | 'submit' | 'schedule' | 'due' | 'reschedule' | 'run-now' | 'prioritise' | 'replace' | 'migrate' | 'arrive' | 'claim' | 'start' | 'step' | 'signal' | 'receive' | 'commit' | 'done' | 'retry' | 'fail' | 'give-up' | 'reject' | 'expire' | 'release' | 'suspend' | 'exhaust' | 'stall' | 'wait' | 'cancel' | 'park' | 'redrive' | 'discard' | 'force' | 'repair'; fromState?: string; toState?: string; reason?: string; from?: number; before?: number; order?: 'oldest' | 'newest'; after?: string; limit?: number }
    answer: {
      readonly items: readonly ({
        readonly pos: string
        readonly fact: Fact
      })[]
      readonly nextCursor: string | null
      readonly unreadable?: readonly ({
        readonly pos: string
        readonly jobId: string
        readonly seq: number
        readonly unreadable: string
      })[]
    }
  }
  /** Sends facts of all jobs as NDJSON or CSV, oldest first, without payloads. */
  exportFacts: {
    query: { jobId?: string; actor?: 'worker' | 'client' | 'engine' | 'doctor' | 'operator'; operator?: string; worker?: string; trigger?: 'create' | 'submit' | 'schedule' | 'due' | 'reschedule' | 'run-now' | 'prioritise' | 'replace' | 'migrate' | 'arrive' | 'claim' | 'start' | 'step' | 'signal' | 'receive' | 'commit' | 'done' | 'retry' | 'fail' | 'give-up' | 'reject' | 'expire' | 'release' | 'suspend' | 'exhaust' | 'stall' | 'wait' | 'cancel' | 'park' | 'redrive' | 'discard' | 'force' | 'repair'; fromState?: string; toState?: string; reason?: string; from?: number; before?: number; format?: 'ndjson' | 'csv'; after?: string; limit?: number }
    answer: string
  }
  /** Lists the seals of the ledger, the oldest first. Keep a copy elsewhere. */
  listSeals: {
    query: { after?: string; limit?: number }
    answer: {
      readonly items: readonly ({
        readonly number: number
        readonly at: number
        readonly first: number
        readonly last: number
        readonly facts: number
        readonly firstAt: number
        readonly lastAt: number
        readonly sum: string
        readonly chain: string
      })[]
      readonly nextCursor: string | null
    }
  }
  /** Verifies that no sealed fact is missing, added or changed. */
  verifySeals: {
    body: {
      readonly seals?: readonly ({
        readonly number: number
        readonly at: number
        readonly first: number
        readonly last: number
        readonly facts: number
        readonly firstAt: number
        readonly lastAt: number
        readonly sum: string
        readonly chain: string
        readonly removed?: {
          readonly facts: number
          readonly sum: string
        }
      })[]
    }
    answer: {
      readonly seals: number
      readonly findings: readonly ({
        readonly kind: string
        readonly message: string
        readonly seal?: number
        readonly range?: readonly (number)[]
        readonly times?: readonly (number)[]
        readonly pruned?: number
        readonly facts?: number
      })[]
      readonly more: boolean
    }
  }
  /** Lists the last 1000 tokens without their secrets, the newest first. */
  listTokens: {
    answer: {
      readonly items: readonly ({
        readonly id: string
        readonly name: string
        readonly roles: readonly ('read' | 'operate' | 'work' | 'admin')[]
        readonly createdAt: number
        readonly createdBy: string
        readonly state: 'valid' | 'expired' | 'revoked'
        readonly expiresAt?: number
        readonly revokedAt?: number
        readonly revokedBy?: string
      })[]
    }
  }
  /** Creates a token. The answer is the only one that contains it. */
  createToken: {
    body: {
      readonly name: string
      readonly roles: readonly ('read' | 'operate' | 'work' | 'admin')[]
      readonly lifeMs?: number
      readonly operator?: string
    }
    answer: {
      readonly id: string
      readonly name: string
      readonly roles: readonly ('read' | 'operate' | 'work' | 'admin')[]
      readonly createdAt: number
      readonly createdBy: string
      readonly state: 'valid' | 'expired' | 'revoked'
      readonly token: string
      readonly expiresAt?: number
      readonly revokedAt?: number
      readonly revokedBy?: string
    }
  }
  /** Revokes a token. Servers refuse it within five seconds. */
  revokeToken: {
    params: { id: string }
    body: {
      readonly operator?: string
    }
    answer: {
      readonly id: string
      readonly changed: boolean
    }
  }
  /** Registers a worker, and reports that it is alive. Repeat it every five seconds. */
  reportWorker: {
    params: { id: string }
    body: {
      readonly activity?: 'working' | 'idle' | 'draining'
      readonly queues?: readonly (string)[]
      readonly types?: readonly (string)[]
      readonly running?: number
      readonly concurrency?: number
    }
    answer: {
      readonly reportEveryMs: number
      readonly goneAfterMs: number
    }
  }
  /** Removes a worker that has stopped from the list. */
  removeWorker: {
    params: { id: string }
    answer: {
      readonly removed: boolean
    }
  }
  /** Claims ready jobs. If there are none, waits up to `waitMs` for some. */
  claimJobs: {
    body: {
      readonly worker: string
      readonly queues?: readonly (string)[]
      readonly types?: readonly (string)[]
      readonly limit?: number
      readonly leaseMs?: number
      readonly start?: boolean
      readonly trace?: boolean
      readonly waitMs?: number
    }
    answer: {
      readonly jobs: readonly ({
        readonly id: string
        readonly type: string
        readonly queue: string
        readonly attempt: number
        readonly tags: readonly (string)[]
        readonly key: unknown
        readonly timeoutMs: unknown
        readonly deadlineAt: unknown
        readonly lease: string
        readonly leaseUntil: number
        readonly started: boolean
        readonly traceparent: unknown
        readonly tracestate: unknown
        readonly input: unknown
        readonly steps: readonly ({
          readonly name: string
          readonly n: number
          readonly result: unknown
        })[]
        readonly waits: readonly ({
          readonly for: string
          readonly name: string
          readonly n: number
          readonly until: unknown
          readonly end?: {
            readonly kind: 'received' | 'passed'
            readonly payload?: unknown
            readonly by?: string
            readonly note?: string
          }
        })[]
      })[]
    }
  }
  /** Renews leases, and says which are lost and which jobs are to be cancelled. */
  renewLeases: {
    body: {
      readonly beats: readonly ({
        readonly lease: string
        readonly progress?: unknown
      })[]
      readonly leaseMs?: number
    }
    answer: {
      readonly lost: readonly (string)[]
      readonly cancelling: readonly (string)[]
    }
  }
  /** Starts the work on a job that was claimed with `start: false`. */
  startAttempt: {
    body: {
      readonly lease: string
    }
    answer: {
      readonly kind: 'done' | 'same' | 'asked'
      readonly id: string
      readonly state: string
      readonly outcome: unknown
      readonly runAt: unknown
    }
  }
  /** Records the result of a step. Later attempts get it with their claim. */
  reportStep: {
    body: {
      readonly lease: string
      readonly name: string
      readonly n?: number
      readonly result?: unknown
    }
    answer: {
      readonly kind: 'done' | 'same' | 'asked'
      readonly id: string
      readonly state: string
      readonly outcome: unknown
      readonly runAt: unknown
    }
  }
  /** Commits a job with its result and its effects, in one transaction. */
  commitJob: {
    body: {
      readonly lease: string
      readonly result?: unknown
      readonly effects?: readonly ({
        readonly name: string
        readonly payload?: unknown
      })[]
      readonly usage?: Readonly<Record<string, number>>
      readonly progress?: unknown
    }
    answer: {
      readonly kind: 'done' | 'same' | 'asked'
      readonly id: string
      readonly state: string
      readonly outcome: unknown
      readonly runAt: unknown
    }
  }
  /** Reports that an attempt failed. The policy of the job decides on a retry. */
  failJob: {
    body: {
      readonly lease: string
      readonly message: string
      readonly kind?: 'error' | 'transient' | 'timeout' | 'overload' | 'unavailable' | 'invalid_input' | 'validation' | 'deadline' | 'configuration' | 'limit_exceeded' | 'terminal'
      readonly retryAfterMs?: number
      readonly name?: string
      readonly code?: string
      readonly stack?: string
      readonly usage?: Readonly<Record<string, number>>
      readonly progress?: unknown
    }
    answer: {
      readonly kind: 'done' | 'same' | 'asked'
      readonly id: string
      readonly state: string
      readonly outcome: unknown
      readonly runAt: unknown
    }
  }
  /** Releases a job without an attempt, so that another worker can claim it. */
  releaseJob: {
    body: {
      readonly lease: string
      readonly progress?: unknown
    }
    answer: {
      readonly kind: 'done' | 'same' | 'asked'
      readonly id: string
      readonly state: string
      readonly outcome: unknown
      readonly runAt: unknown
    }
  }
  /** Ends an attempt without a failure; the job runs again later. */
  snoozeJob: {
    body: {
      readonly lease: string
      readonly delayMs?: number
      readonly runAt?: number
      readonly progress?: unknown
    }
    answer: {
      readonly kind: 'done' | 'same' | 'asked'
      readonly id: string
      readonly state: string
      readonly outcome: unknown
      readonly runAt: unknown
    }
  }
  /** Ends a job as cancelled whose cancellation was asked for. */
  confirmCancel: {
    body: {
      readonly lease: string
      readonly progress?: unknown
    }
    answer: {
      readonly kind: 'done' | 'same' | 'asked'
      readonly id: string
      readonly state: string
      readonly outcome: unknown
      readonly runAt: unknown
    }
  }
  /** Sleeps, or waits for a signal. If the wait is not over, the attempt ends. */
  waitFor: {
    body: {
      readonly lease: string
      readonly for: 'sleep' | 'signal'
      readonly name: string
      readonly n?: number
      readonly timeoutMs?: number
      readonly until?: number
    }
    answer: {
      readonly kind: 'over' | 'suspended'
      readonly id: string
      readonly state: string
      readonly runAt: unknown
      readonly end?: {
        readonly kind: 'received' | 'passed'
        readonly payload?: unknown
        readonly by?: string
        readonly note?: string
      }
    }
  }
}

/** The method and the path of each operation. */
export const ROUTES: { readonly [Name in keyof Operations]: string } = {
  enqueueJob: 'POST /api/v1/jobs',
  enqueueJobs: 'POST /api/v1/jobs/batch',
  listJobs: 'GET /api/v1/jobs',
  showJob: 'GET /api/v1/jobs/{id}',
  listJobFacts: 'GET /api/v1/jobs/{id}/facts',
  showJobAt: 'GET /api/v1/jobs/{id}/at/{seq}',
  diffJob: 'GET /api/v1/jobs/{id}/diff',
  explainJob: 'GET /api/v1/jobs/{id}/explain',
  downloadInput: 'GET /api/v1/jobs/{id}/input',
  downloadResult: 'GET /api/v1/jobs/{id}/result',
  submitJob: 'POST /api/v1/jobs/{id}/submit',
  submitJobs: 'POST /api/v1/jobs/submit',
  retryJob: 'POST /api/v1/jobs/{id}/retry',
  retryJobs: 'POST /api/v1/jobs/retry',
  copyJob: 'POST /api/v1/jobs/{id}/copy',
  copyJobs: 'POST /api/v1/jobs/copy',
  cancelJob: 'POST /api/v1/jobs/{id}/cancel',
  cancelJobs: 'POST /api/v1/jobs/cancel',
  quarantineJob: 'POST /api/v1/jobs/{id}/quarantine',
  quarantineJobs: 'POST /api/v1/jobs/quarantine',
  redriveJob: 'POST /api/v1/jobs/{id}/redrive',
  redriveJobs: 'POST /api/v1/jobs/redrive',
  discardJob: 'POST /api/v1/jobs/{id}/discard',
  discardJobs: 'POST /api/v1/jobs/discard',
  forceJob: 'POST /api/v1/jobs/{id}/force',
  forceJobs: 'POST /api/v1/jobs/force',
  rescheduleJob: 'POST /api/v1/jobs/{id}/reschedule',
  rescheduleJobs: 'POST /api/v1/jobs/reschedule',
  prioritiseJob: 'POST /api/v1/jobs/{id}/prioritise',
  prioritiseJobs: 'POST /api/v1/jobs/prioritise',
  approveJob: 'POST /api/v1/jobs/{id}/approve',
  approveJobs: 'POST /api/v1/jobs/approve',
  rejectJob: 'POST /api/v1/jobs/{id}/reject',
  rejectJobs: 'POST /api/v1/jobs/reject',
  sendSignal: 'POST /api/v1/jobs/{id}/signals',
  listSignals: 'GET /api/v1/jobs/{id}/signals',
  listFlows: 'GET /api/v1/flows',
  showFlow: 'GET /api/v1/flows/{id}',
  listFlowNodes: 'GET /api/v1/flows/{id}/nodes',
  showFlowGraph: 'GET /api/v1/flows/{id}/graph',
  showBatch: 'GET /api/v1/batches/{id}',
  showJobLinks: 'GET /api/v1/jobs/{id}/links',
  cancelFlow: 'POST /api/v1/flows/{id}/cancel',
  redriveFlow: 'POST /api/v1/flows/{id}/redrive',
  addToBatch: 'POST /api/v1/batches/{id}/add',
  closeBatch: 'POST /api/v1/batches/{id}/close',
  showToken: 'GET /api/v1/signals/{token}',
  useToken: 'POST /api/v1/signals/{token}',
  showInbox: 'GET /api/v1/inbox',
  listEffects: 'GET /api/v1/effects',
  retryEffects: 'POST /api/v1/effects/retry',
  listQueues: 'GET /api/v1/queues',
  listQueueRecords: 'GET /api/v1/queue-records',
  showQueue: 'GET /api/v1/queues/{queue}',
  pauseQueue: 'POST /api/v1/queues/{queue}/pause',
  resumeQueue: 'POST /api/v1/queues/{queue}/resume',
  limitQueue: 'POST /api/v1/queues/{queue}/limit',
  listLimits: 'GET /api/v1/limits',
  listGates: 'GET /api/v1/gates',
  listLimitRecords: 'GET /api/v1/limit-records',
  showLimit: 'GET /api/v1/limits/{limit}',
  auditLimit: 'GET /api/v1/limits/{limit}/audit',
  setLimit: 'POST /api/v1/limits/{limit}/set',
  resetLimit: 'POST /api/v1/limits/{limit}/reset',
  listSchedules: 'GET /api/v1/schedules',
  listScheduleRecords: 'GET /api/v1/schedule-records',
  showSchedule: 'GET /api/v1/schedules/{schedule}',
  listNextTicks: 'GET /api/v1/schedules/{schedule}/next',
  putSchedule: 'POST /api/v1/schedules/{schedule}',
  pauseSchedule: 'POST /api/v1/schedules/{schedule}/pause',
  resumeSchedule: 'POST /api/v1/schedules/{schedule}/resume',
  runScheduleNow: 'POST /api/v1/schedules/{schedule}/run-now',
  backfillSchedule: 'POST /api/v1/schedules/{schedule}/backfill',
  removeSchedule: 'POST /api/v1/schedules/{schedule}/remove',
  readRetention: 'GET /api/v1/retention',
  runRetention: 'POST /api/v1/retention/run',
  listRuns: 'GET /api/v1/runs',
  showRun: 'GET /api/v1/runs/{id}',
  listRunEvents: 'GET /api/v1/runs/{id}/events',
  showRunAt: 'GET /api/v1/runs/{id}/at/{seq}',
  diffRun: 'GET /api/v1/runs/{id}/diff',
  explainRun: 'GET /api/v1/runs/{id}/explain',
  verifyRun: 'GET /api/v1/runs/{id}/verify',
  listArtifacts: 'GET /api/v1/runs/{id}/artifacts',
  downloadArtifact: 'GET /api/v1/runs/{id}/artifacts/{artifact}',
  showArtifact: 'GET /api/v1/runs/{id}/artifacts/{artifact}/content',
  listWorkItems: 'GET /api/v1/runs/{id}/items',
  listIssues: 'GET /api/v1/runs/{id}/issues',
  exportRun: 'GET /api/v1/runs/{id}/export',
  importRun: 'POST /api/v1/runs/import',
  listRunDefinitions: 'GET /api/v1/run-definitions',
  startRun: 'POST /api/v1/runs',
  resumeRun: 'POST /api/v1/runs/{id}/resume',
  cancelRun: 'POST /api/v1/runs/{id}/cancel',
  forkRun: 'POST /api/v1/runs/{id}/fork',
  linkCommit: 'POST /api/v1/runs/{id}/link',
  readOverview: 'GET /api/v1/overview',
  streamFacts: 'GET /api/v1/stream',
  isAlive: 'GET /healthz',
  isReady: 'GET /readyz',
  readMetrics: 'GET /metrics',
  readDocument: 'GET /openapi.json',
  whoAmI: 'GET /api/v1/whoami',
  listWorkers: 'GET /api/v1/workers',
  readStats: 'GET /api/v1/stats',
  listMachines: 'GET /api/v1/machines',
  showMachine: 'GET /api/v1/machines/{name}',
  migrateJobs: 'POST /api/v1/machines/{name}/migrate',
  checkStore: 'POST /api/v1/doctor/check',
  planRepair: 'POST /api/v1/doctor/plan',
  repairStore: 'POST /api/v1/doctor/apply',
  listFacts: 'GET /api/v1/audit',
  exportFacts: 'GET /api/v1/audit/export',
  listSeals: 'GET /api/v1/seals',
  verifySeals: 'POST /api/v1/seals/verify',
  listTokens: 'GET /api/v1/tokens',
  createToken: 'POST /api/v1/tokens',
  revokeToken: 'POST /api/v1/tokens/{id}/revoke',
  reportWorker: 'POST /api/v1/workers/{id}',
  removeWorker: 'DELETE /api/v1/workers/{id}',
  claimJobs: 'POST /api/v1/claim',
  renewLeases: 'POST /api/v1/leases/heartbeat',
  startAttempt: 'POST /api/v1/leases/start',
  reportStep: 'POST /api/v1/leases/step',
  commitJob: 'POST /api/v1/leases/commit',
  failJob: 'POST /api/v1/leases/fail',
  releaseJob: 'POST /api/v1/leases/release',
  snoozeJob: 'POST /api/v1/leases/snooze',
  confirmCancel: 'POST /api/v1/leases/cancel',
  waitFor: 'POST /api/v1/leases/wait',
}
