/**
 * The names and attributes of all spans. Names follow the messaging conventions of OpenTelemetry,
 * which are not stable yet; what the conventions do not have begins with `pawl.`.
 *
 *   send {queue}      producer   an enqueue; its jobs keep the ids of this span
 *   receive {queue}   client     a claim that returned jobs, with a link to each `send`
 *   process {queue}   consumer   an attempt: the handler runs inside it
 *   step {name}       internal   a step that ran; a step whose result was stored has no span
 *   commit {queue}    client     the commit of a handler: its function runs inside it
 *   settle {queue}    client     the report of an attempt without a commit
 *   effect {name}     consumer   a delivery of an effect: its function runs inside it
 *   fire schedules    producer   ticks that became jobs
 *   run {name}        internal   the work of this process on a run
 *   node {state}      internal   a node of a run
 *   work {key}        internal   a work item of a run
 */
import type { Job } from '../../core/job/job.ts'
import type { TraceContext } from '../../core/trace.ts'
import type { EnqueueItem, Held, HeldEffect, Settlement } from '../../stores/contract/store.ts'
import type { Attributes } from './opentelemetry.ts'
import type { SpanStart } from './tracer.ts'

const SYSTEM = { 'messaging.system': 'pawl' } as const

/** The operation and its type, by the conventions. */
function operation(name: string, type: 'send' | 'receive' | 'process' | 'settle'): Attributes {
  return { ...SYSTEM, 'messaging.operation.name': name, 'messaging.operation.type': type }
}

function queueAttribute(queue: string | undefined): Attributes {
  return queue === undefined ? {} : { 'messaging.destination.name': queue }
}

/** The attributes of one job. */
function jobAttributes({ id, type, queue, attempt }: Job): Attributes {
  return {
    ...queueAttribute(queue),
    'messaging.message.id': id,
    'pawl.job.kind': type,
    'pawl.attempt': attempt,
    'pawl.execution.id': `${id}/${attempt}`,
  }
}

/** The one value that all have; `undefined` if there are several. */
function common<T>(values: readonly T[]): T | undefined {
  return new Set(values).size === 1 ? values[0] : undefined
}

function named(word: string, subject: string | undefined): string {
  return subject === undefined ? word : `${word} ${subject}`
}

export function sendSpan(
  items: readonly EnqueueItem[],
  parent: TraceContext | undefined,
): SpanStart {
  const queue = common(items.map(({ command }) => command.queue))
  const kind = common(items.map(({ command }) => command.type))
  const [only] = items
  return {
    name: named('send', queue),
    kind: 'producer',
    parent: parent ?? 'active',
    attributes: {
      ...operation('send', 'send'),
      ...queueAttribute(queue),
      ...(kind !== undefined && { 'pawl.job.kind': kind }),
      ...(items.length === 1 && only !== undefined
        ? { 'messaging.message.id': only.command.jobId }
        : { 'messaging.batch.message_count': items.length }),
    },
  }
}

export function receiveSpan(
  held: readonly Held[],
  links: readonly TraceContext[],
  startedAt: number,
): SpanStart {
  const queue = common(held.map(({ job }) => job.queue))
  return {
    name: named('receive', queue),
    kind: 'client',
    parent: 'none',
    links,
    startedAt,
    attributes: {
      ...operation('receive', 'receive'),
      ...queueAttribute(queue),
      'messaging.batch.message_count': held.length,
    },
  }
}

export function processSpan(
  { job }: Held,
  cause: Pick<SpanStart, 'parent' | 'links'>,
  worker: string,
): SpanStart {
  return {
    name: `process ${job.queue}`,
    kind: 'consumer',
    ...cause,
    attributes: {
      ...operation('process', 'process'),
      ...jobAttributes(job),
      'pawl.worker.id': worker,
    },
  }
}

export function stepSpan(job: Job, name: string): SpanStart {
  const attributes = { ...SYSTEM, ...jobAttributes(job), 'pawl.step.name': name }
  return { name: `step ${name}`, kind: 'internal', attributes }
}

export function commitSpan(job: Job): SpanStart {
  const attributes = { ...operation('commit', 'settle'), ...jobAttributes(job) }
  return { name: `commit ${job.queue}`, kind: 'client', attributes }
}

export function settleSpan({ held, command }: Settlement, parent: TraceContext): SpanStart {
  const { job } = held
  const attributes = { ...operation(command.kind, 'settle'), ...jobAttributes(job) }
  return { name: `settle ${job.queue}`, kind: 'client', parent, attributes }
}

export function effectSpan(
  { jobId, jobType, name, key, tries }: HeldEffect,
  cause: Pick<SpanStart, 'parent' | 'links'>,
): SpanStart {
  return {
    name: `effect ${name}`,
    kind: 'consumer',
    ...cause,
    attributes: {
      ...operation('deliver', 'process'),
      'messaging.message.id': key,
      'pawl.job.id': jobId,
      'pawl.job.kind': jobType,
      'pawl.effect.name': name,
      'pawl.effect.tries': tries,
    },
  }
}

export function fireSpan(): SpanStart {
  const attributes = operation('fire', 'send')
  return { name: 'fire schedules', kind: 'producer', parent: 'none', attributes }
}

export function runSpan(name: string, runId: string, parent: TraceContext | undefined): SpanStart {
  const attributes = { 'pawl.run.id': runId, 'pawl.run.name': name }
  return { name: `run ${name}`, kind: 'internal', parent: parent ?? 'active', attributes }
}

export function nodeSpan(runId: string, state: string): SpanStart {
  const attributes = { 'pawl.run.id': runId, 'pawl.run.stage': state }
  return { name: `node ${state}`, kind: 'internal', attributes }
}

export function workSpan(runId: string, key: string): SpanStart {
  const attributes = { 'pawl.run.id': runId, 'pawl.run.work_item': key }
  return { name: `work ${key}`, kind: 'internal', attributes }
}
