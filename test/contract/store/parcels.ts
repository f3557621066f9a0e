/** Three versions of one lifecycle, for the tests of migrations. */
import { defineLifecycle, type JobTrigger } from '../../../src/core/lifecycles/lifecycle.ts'
import type { EdgeSpec } from '../../../src/core/machine/define.ts'

type Edge<S extends string> = EdgeSpec<S, JobTrigger>

/** The way of a parcel, by the names that its states have in a version. */
function edgesOf<const S extends string>(names: {
  readonly ready: S
  readonly held: S
  readonly waiting: S
  readonly parked: S
  readonly done: S
  readonly failed: S
}): Edge<S>[] {
  const { ready, held, waiting, parked, done, failed } = names
  const spent: readonly JobTrigger[] = ['give-up', 'reject', 'park']
  return [
    { from: ready, to: held, on: ['claim'] },
    { from: held, to: done, on: ['succeed'] },
    { from: held, to: ready, on: ['release'] },
    { from: held, to: waiting, on: ['retry', 'expire'] },
    { from: waiting, to: ready, on: ['due', 'run-now'] },
    { from: held, to: failed, on: ['fail', 'cancel'] },
    { from: ready, to: failed, on: ['cancel'] },
    { from: waiting, to: failed, on: ['cancel'] },
    { from: held, to: parked, on: spent },
    { from: ready, to: parked, on: ['park'] },
    { from: waiting, to: parked, on: ['park'] },
    { from: parked, to: ready, on: ['redrive'], operator: true },
    { from: parked, to: failed, on: ['cancel'] },
    { from: failed, to: ready, on: ['redrive'], operator: true },
  ]
}

const policy = { retry: { max: 2, delayMs: 1000, jitter: 0 }, crashesMax: 2 } as const

/** The first version. */
export const parcel1 = defineLifecycle({
  name: 'parcel',
  version: 1,
  initial: 'packed',
  states: {
    packed: { role: 'ready', meaning: 'Waits for a courier.' },
    underway: { role: 'held', meaning: 'Is carried.' },
    missed: { role: 'waiting', meaning: 'Is carried again later.' },
    stuck: { role: 'parked', meaning: 'Waits for a person.' },
    delivered: { role: 'succeeded', meaning: 'Has arrived.' },
    lost: { role: 'failed', meaning: 'Does not arrive.' },
  },
  edges: edgesOf({
    ready: 'packed',
    held: 'underway',
    waiting: 'missed',
    parked: 'stuck',
    done: 'delivered',
    failed: 'lost',
  }),
  policy,
})

/** Other names for most states, and a new one for parcels that are written off. */
export const parcel2 = defineLifecycle({
  name: 'parcel',
  version: 2,
  initial: 'ready',
  states: {
    ready: { role: 'ready', meaning: 'Waits for a courier.' },
    carried: { role: 'held', meaning: 'Is carried.' },
    again: { role: 'waiting', meaning: 'Is carried again later.' },
    stuck: { role: 'parked', meaning: 'Waits for a person.' },
    delivered: { role: 'succeeded', meaning: 'Has arrived.' },
    failed: { role: 'failed', meaning: 'Does not arrive.' },
  },
  edges: edgesOf({
    ready: 'ready',
    held: 'carried',
    waiting: 'again',
    parked: 'stuck',
    done: 'delivered',
    failed: 'failed',
  }),
  policy,
  from: { 1: { packed: 'ready', underway: 'carried', missed: 'again', lost: 'failed' } },
})

/** No parked state any more, and retries wait in the ready state. It maps version 2 only. */
export const parcel3 = defineLifecycle({
  name: 'parcel',
  version: 3,
  initial: 'ready',
  states: {
    ready: { role: 'ready', meaning: 'Waits for a courier.' },
    carried: { role: 'held', meaning: 'Is carried.' },
    delivered: { role: 'succeeded', meaning: 'Has arrived.' },
    failed: { role: 'failed', meaning: 'Does not arrive.' },
  },
  edges: [
    { from: 'ready', to: 'carried', on: ['claim'] },
    { from: 'carried', to: 'delivered', on: ['succeed'] },
    { from: 'carried', to: 'ready', on: ['release', 'retry', 'expire'] },
    { from: 'carried', to: 'failed', on: ['fail', 'give-up', 'reject', 'cancel'] },
    { from: 'ready', to: 'failed', on: ['cancel'] },
    { from: 'failed', to: 'ready', on: ['redrive'], operator: true },
  ],
  policy,
  from: { 2: { again: 'ready', stuck: 'ready' } },
})
