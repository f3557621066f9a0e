/** Machines by name and version: loaded once, because they never change. */
import { signal } from '@preact/signals'
import type { Role } from '../src/core/lifecycles/lifecycle.ts'
import { call } from './api/client.ts'
import { type MachineData, type Tone, toneOf } from './machine-data.ts'

const loaded = signal<ReadonlyMap<string, MachineData>>(new Map())
const asked = new Set<string>()

type Kind = 'job' | 'execution' | 'worker' | 'run'

/**
 * The machine; undefined until it is loaded, and if the server does not know it. A lifecycle and a
 * run may have the same name.
 */
export function machineOf(kind: Kind, name: string, version?: number): MachineData | undefined {
  const key = `${kind} ${name}@${version ?? ''}`
  if (!asked.has(key)) {
    asked.add(key)
    void load(key, name, { kind, version })
  }
  return loaded.value.get(key)
}

async function load(
  key: string,
  name: string,
  query: { readonly kind: Kind; readonly version: number | undefined },
): Promise<void> {
  try {
    const answer = await call('showMachine', { params: { name }, query })
    loaded.value = new Map(loaded.value).set(key, answer as unknown as MachineData)
  } catch {
    // The next page that shows it asks again.
    asked.delete(key)
  }
}

/** The lifecycles of jobs that the server knows; undefined until asked for. */
const lifecycles = signal<readonly { name: string; version: number }[] | undefined>(undefined)
let isAsked = false

/**
 * The role of a state, whatever its lifecycle; undefined until the machines are loaded. If two
 * lifecycles have a state of this name, the first counts: built-in ones are first.
 */
export function roleOfState(state: string): Role | undefined {
  if (!isAsked) {
    isAsked = true
    void loadLifecycles()
  }
  for (const { name, version } of lifecycles.value ?? []) {
    const states = machineOf('job', name, version)?.states ?? {}
    if (Object.hasOwn(states, state)) return states[state]?.role
  }
  return undefined
}

async function loadLifecycles(): Promise<void> {
  try {
    const { items } = await call('listMachines', { query: { kind: 'job' } })
    lifecycles.value = items
  } catch {
    isAsked = false
  }
}

/** The tone of the state of a job, by its own machine as soon as that is loaded. */
export function jobTone(job: {
  readonly state: string
  readonly lifecycle: string
  readonly lifecycleVersion: number
}): Tone {
  const machine = machineOf('job', job.lifecycle, job.lifecycleVersion)
  const states = machine?.states ?? {}
  return toneOf(job.state, Object.hasOwn(states, job.state) ? states[job.state]?.role : undefined)
}
