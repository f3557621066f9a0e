/**
 * A fork is a new run that begins with the events of another run, up to one event. The events get
 * the new run id, new event ids and a new chain; times, traces and actors stay. The first event
 * names the other run and the event (`origin`). All contents that the events name are copied.
 */
import { CommandInvalid } from '../../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import type { RunEvent } from '../../core/run/events.ts'
import type { Environment } from '../../environment/system.ts'
import { artifactsOf } from './bundle.ts'
import { RunLogDamaged } from './errors.ts'
import { chain, emptyLog } from './event-line.ts'
import { sha256Of } from './hash.ts'
import type { Damage, Journal, RunReader } from './journal.ts'

/** The run to fork, the last event to copy, and the id of the new run. */
export interface Fork {
  readonly from: string
  readonly seq: number
  readonly runId: string
}

// The journal checks the names of runs, and the reader the number of the event.
const FORK: FieldChecks<Fork> = { from: unchecked, seq: unchecked, runId: unchecked }

/**
 * Forks a run. The new run exists completely or not at all. The log of the other run may be damaged
 * after the event.
 */
export async function forkRun(
  journal: Journal,
  fork: Fork,
  { ids }: Pick<Environment, 'ids'>,
): Promise<void> {
  checkFields(fork, FORK, { what: 'fork' })
  const { from, seq, runId } = fork
  const reader = await journal.read(from)
  await assertGood(reader, seq)
  const hash = await hashOfLine(reader, seq)
  const events: RunEvent[] = []
  for await (const event of reader.events({ to: seq })) {
    const own = { ...event, run_id: runId, event_id: ids.next() }
    const origin = { run_id: from, seq, hash }
    events.push(own.type === 'RUN_CREATED' ? { ...own, data: { ...own.data, origin } } : own)
  }
  const { lines } = chain(emptyLog(runId), events)
  const artifacts: { name: string; content: Uint8Array }[] = []
  for (const { name, sha256 } of await artifactsOf(reader, seq)) {
    artifacts.push({ name, content: await reader.readArtifact(name, sha256) })
  }
  await journal.restore({ runId, lines, artifacts })
}

/** Throws `RunLogDamaged` if the log is damaged at this event or before it. */
async function assertGood(reader: RunReader, seq: number): Promise<void> {
  const damage = await findDamage(reader)
  if (damage !== undefined && damage.line <= seq) throw new RunLogDamaged(reader.runId, damage)
}

async function findDamage(reader: RunReader): Promise<Damage | undefined> {
  try {
    return (await reader.replay()).damage
  } catch (error) {
    if (error instanceof RunLogDamaged) return error.damage
    throw error
  }
}

async function hashOfLine(reader: RunReader, seq: number): Promise<string> {
  let number = 0
  for await (const line of reader.lines({ to: seq })) if (++number === seq) return sha256Of(line)
  throw new CommandInvalid('seq', `must be an event of run ${reader.runId}, from 1 to ${number}`)
}
