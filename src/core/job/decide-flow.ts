/** How a job is created, becomes due, is rescheduled and is cancelled. */
import { encode } from '../canonical-json.ts'
import { CommandInvalid, JobEnded, JobParked, JobStarted, NotDue, Unsupported } from '../errors.ts'
import { type Lifecycle, pathOf } from '../lifecycles/lifecycle.ts'
import { writeKeys } from '../limits/keys.ts'
import type { Command, Context, CreateCommand } from './commands.ts'
import {
  type Decision,
  follow,
  misplaced,
  newFact,
  note,
  offPath,
  reject,
  SAME,
  type Situation,
} from './decision.ts'
import type { JobAttributes } from './job.ts'
import { isDue } from './lanes.ts'
import { linksOf } from './links.ts'
import { RESUMED } from './waits.ts'

type Of<K extends Command['kind']> = Extract<Command, { kind: K }>

/** Creates the job and moves it towards ready, as far as its due time allows, in one step. */
export function decideCreate(
  lifecycle: Lifecycle,
  command: CreateCommand,
  context: Context,
): Decision {
  const { initial } = lifecycle.machine
  const idle = lifecycle.roles.get(initial) === 'idle'
  if (command.hold && !idle) return reject(new Unsupported(lifecycle.name, 'hold'))
  if (lifecycle.retryFixed && overridesRetry(lifecycle, command)) {
    return reject(
      new CommandInvalid(
        'policy',
        'must not change the retry policy, because the lifecycle fixes it',
      ),
    )
  }
  const { after, flow } = command
  const stays = command.hold || after !== undefined
  const later = command.runAt !== undefined && command.runAt > context.now
  // Without a state for delayed jobs, the job waits in its initial state.
  const path = stays ? undefined : pathOf(lifecycle, initial, later ? 'schedule' : 'submit')
  const states = [initial, ...(path ?? [])]
  const runAt = stays ? null : later ? (command.runAt as number) : context.now
  const to = states[states.length - 1] as string
  const fact = newFact(context, command.jobId, 1, 'create', null, to)
  if (states.length > 1) fact.via = states.slice(0, -1)
  fact.created = attributesOf(lifecycle, command)
  fact.priority = command.priority ?? 0
  if (command.aheadMs) fact.aheadMs = command.aheadMs
  fact.runAt = runAt
  const links = linksOf(command.awaited, after)
  if (links !== 0) fact.links = links
  if (flow?.as !== undefined) fact.as = flow.as
  if (after !== undefined) fact.after = after
  return { kind: 'fact', fact }
}

function overridesRetry({ policy }: Lifecycle, command: CreateCommand): boolean {
  const own = command.policy?.retry ?? policy.retry
  return encode(own) !== encode(policy.retry)
}

function attributesOf(lifecycle: Lifecycle, command: CreateCommand): JobAttributes {
  return {
    type: command.type,
    queue: command.queue,
    lifecycle: lifecycle.name,
    lifecycleVersion: lifecycle.version,
    tags: [...(command.tags ?? [])],
    key: command.key ?? null,
    limitKey: writeKeys(command.limitKeys ?? []),
    retryOf: command.retryOf ?? null,
    timeoutMs: command.timeoutMs ?? null,
    deadlineAt: command.deadlineAt ?? null,
    policy: command.policy ?? null,
    ...(command.flow !== undefined && { flow: command.flow.id, node: command.flow.n }),
  }
}

/** Makes a job that was created with `hold` run now. */
export function decideSubmit(situation: Situation): Decision {
  return follow(situation, 'submit', { runAt: situation.context.now })
}

/** Makes a job that was created with `hold` run at a given time; a past time means now. */
export function decideSchedule(situation: Situation, command: Of<'schedule'>): Decision {
  const { lifecycle, job, context } = situation
  const { runAt } = command
  const { initial } = lifecycle.machine
  if (lifecycle.roles.get(initial) !== 'idle') {
    return reject(new Unsupported(lifecycle.name, 'schedule'))
  }
  // Jobs wait in the scheduled state, or in the initial state if the lifecycle has none.
  const scheduled = lifecycle.targets.get('schedule') ?? initial
  if (runAt <= context.now) {
    const waits = job.state === scheduled && job.runAt !== null
    return waits ? decideReschedule(situation, command) : decideSubmit(situation)
  }
  if (pathOf(lifecycle, job.state, 'schedule') !== undefined) {
    return follow(situation, 'schedule', { runAt })
  }
  if (job.state !== scheduled) return misplaced(lifecycle, job, 'schedule', scheduled)
  return job.runAt === runAt ? SAME : note(situation, 'schedule', { runAt })
}

/** Records that the due time was reached. A ready job only changes its lane (rule G2). */
export function decideDue(situation: Situation): Decision {
  const { lifecycle, job, context } = situation
  const ready = job.state === lifecycle.ready
  if (!ready && pathOf(lifecycle, job.state, 'due') === undefined) return offPath(situation, 'due')
  if (job.blockedReason !== null) return reject(new JobParked(job.id, job.blockedReason))
  if (!isDue(job, context.now)) return reject(new NotDue(job.id, job.runAt))
  // A throttle does not count the start of a job whose wait is over.
  const isWait = job.state === lifecycle.targets.get('wait')
  return ready ? SAME : follow(situation, 'due', isWait ? { reason: RESUMED } : {})
}

/** Changes the due time. A time that is not in the future means: run now. */
export function decideReschedule(
  situation: Situation,
  command: Pick<Of<'reschedule'>, 'runAt'>,
): Decision {
  const { lifecycle, job, context } = situation
  if (job.outcome !== null) return reject(new JobEnded(job.id, job.state, 'reschedule'))
  const now = command.runAt <= context.now
  const trigger = now ? 'run-now' : 'reschedule'
  const runAt = now ? context.now : command.runAt
  const role = lifecycle.roles.get(job.state)
  // A job that was never submitted has no due time. The end of a wait is fixed when it begins.
  const isWait = job.state === lifecycle.targets.get('wait')
  if (job.runAt === null || isWait) return misplaced(lifecycle, job, 'reschedule', lifecycle.ready)
  if (pathOf(lifecycle, job.state, trigger) !== undefined) {
    return follow(situation, trigger, { runAt })
  }
  if (role === 'waiting' && lifecycle.retryFixed) {
    return reject(new Unsupported(lifecycle.name, 'reschedule of a retry'))
  }
  const movable = role === 'ready' || (!now && (role === 'waiting' || role === 'idle'))
  if (!movable) return misplaced(lifecycle, job, 'reschedule', lifecycle.ready)
  const same = now ? isDue(job, runAt) : job.runAt === runAt
  return same ? SAME : note(situation, trigger, { runAt })
}

/** Changes the priority of a job that has not ended. */
export function decidePrioritise(situation: Situation, command: Of<'prioritise'>): Decision {
  const { job } = situation
  if (job.outcome !== null) return reject(new JobEnded(job.id, job.state, 'prioritise'))
  const { priority, aheadMs = 0 } = command
  if (job.priority === priority && job.aheadMs === aheadMs) return SAME
  return note(situation, 'prioritise', {
    priority,
    ...(aheadMs !== job.aheadMs && { aheadMs }),
  })
}

/** Replaces the input of a job that has never started. */
export function decideReplace(situation: Situation, command: Of<'replace'>): Decision {
  const { job } = situation
  if (job.outcome !== null) return reject(new JobEnded(job.id, job.state, 'replace'))
  if (job.attempt > 0) return reject(new JobStarted(job.id, 'replace'))
  const limitKey = command.limitKeys === undefined ? job.limitKey : writeKeys(command.limitKeys)
  return note(situation, 'replace', limitKey === job.limitKey ? {} : { limitKey })
}

/** Fails a job because its queue is too deep or its wait too long, if the lifecycle allows it. */
export function decideExhaust(situation: Situation): Decision {
  const error = {
    message: 'The queue has no room or no time left for this job',
    kind: 'resource_exhausted',
    type: 'TERMINAL',
  } as const
  return follow(situation, 'exhaust', { error, reason: 'resource_exhausted' })
}

/** Ends the job on request. An execution that holds the job loses it. */
export function decideCancel(situation: Situation, command: Of<'cancel'>): Decision {
  const { reason = 'cancelled' } = command
  return follow(situation, 'cancel', { reason }, 'cancelled')
}
