/**
 * How a run begins: the event RUN_CREATED, then the artifact `run:definition`. A run is
 * acknowledged when both are durable.
 *
 *   { "definition": <name>, "input": …, "machine": { … } }
 *
 * `machine` is absent if it is the machine of R4, and in older runs. With it, a process that does
 * not have the code of the nodes can cancel, link, explain and fail the run.
 */
import { encode } from '../core/canonical-json.ts'
import { LifecycleUnknown } from '../core/errors.ts'
import { defineMachine, type MachineSpec } from '../core/machine/define.ts'
import type { RunFact } from '../core/run/events.ts'
import { defineRunMachine, documentationRun, type RunMachine } from '../core/run/machine.ts'
import { entryOf, type Run } from '../core/run/run.ts'
import { ARTIFACT_JSON } from './artifacts.ts'
import { RunDiffers, RunIncomplete } from './errors.ts'
import { ArtifactChanged, ArtifactMissing } from './journal/errors.ts'
import { factsOf } from './run-log.ts'

export const DEFINITION = 'run:definition'

/** Reads a content of the run. */
export type ReadContent = (name: string, sha256: string) => Promise<Uint8Array>

interface MadeFor {
  readonly definition: string
  readonly input: unknown
  readonly machine?: MachineRecord
}

interface MachineRecord {
  readonly name: string
  readonly version: number
  readonly initial: string
  readonly states: Readonly<Record<string, object>>
  readonly edges: readonly { readonly from: string; readonly to: string; readonly on: string[] }[]
  readonly failed: string
  readonly cancelled: string
  readonly fixLoop?: RunMachine['fixLoop']
}

/** Returns the first fact of a run, RUN_CREATED. */
export function createFacts(machine: RunMachine, maxFixAttempts?: number): readonly RunFact[] {
  const attempts = maxFixAttempts === undefined ? {} : { maxFixAttempts }
  return factsOf(machine, null, { kind: 'create', ...attempts })
}

/** Returns the bytes of the artifact. */
export function encodeMadeFor(name: string, runMachine: RunMachine, input: unknown): Uint8Array {
  const own = isDocumented(runMachine) ? {} : { machine: recordOf(runMachine) }
  return Buffer.from(encode({ definition: name, input, ...own }, ARTIFACT_JSON))
}

/** Reads the artifact. Throws `RunIncomplete` if it was never written. */
export async function readMadeFor(run: Run, read: ReadContent): Promise<MadeFor> {
  const known = entryOf(run.artifacts_index, DEFINITION)
  if (known === undefined) throw new RunIncomplete(run.run_id)
  return JSON.parse(new TextDecoder().decode(await read(DEFINITION, known.sha256))) as MadeFor
}

/** Returns the machine of a run: a known one, or its own record. Throws `LifecycleUnknown`. */
export async function machineOf(
  run: Run,
  known: readonly RunMachine[],
  read: ReadContent,
): Promise<RunMachine> {
  const { name, version } = run.machine
  const isIts = ({ machine }: RunMachine) => machine.name === name && machine.version === version
  const found = [...known, documentationRun].find(isIts) ?? (await recordedMachine(run, read))
  if (found === undefined || !isIts(found)) throw new LifecycleUnknown(name, version)
  return found
}

async function recordedMachine(run: Run, read: ReadContent): Promise<RunMachine | undefined> {
  try {
    const { machine } = await readMadeFor(run, read)
    if (machine === undefined) return undefined
    const { failed, cancelled, fixLoop, ...spec } = machine
    // Checked again, because another version of Pawl may have written it.
    const own = defineMachine({ ...spec, sameState: 'refuse' } as MachineSpec)
    return defineRunMachine({ machine: own, failed, cancelled, ...(fixLoop && { fixLoop }) })
  } catch (error) {
    if (error instanceof RunIncomplete) return undefined
    if (error instanceof ArtifactMissing || error instanceof ArtifactChanged) return undefined
    throw error
  }
}

/** Throws `RunDiffers` if the run has another definition or input. */
export async function assertMadeFor(
  run: Run,
  { definition, input }: Pick<MadeFor, 'definition' | 'input'>,
  read: ReadContent,
): Promise<void> {
  const made = await readMadeFor(run, read)
  if (made.definition !== definition) throw new RunDiffers(run.run_id, 'kind')
  const [before, now] = [made.input ?? null, input ?? null].map((it) => encode(it, ARTIFACT_JSON))
  if (before !== now) throw new RunDiffers(run.run_id, 'input')
}

function isDocumented({ machine }: RunMachine): boolean {
  const { name, version } = documentationRun.machine
  return machine.name === name && machine.version === version
}

function recordOf({ machine, failed, cancelled, fixLoop }: RunMachine): MachineRecord {
  const { name, version, initial, states, edges } = machine
  return {
    ...{ name, version, initial, failed, cancelled },
    states: Object.fromEntries(states),
    edges: edges.map((edge) => ({ ...edge, on: [...edge.on] })),
    ...(fixLoop && { fixLoop: { ...fixLoop } }),
  }
}
