/**
 * A fork is a run of its own that begins with what another had done up to an event. Its events are
 * those of the other in envelopes of their own: a new run id, new event ids and a new chain. Times,
 * traces and actors stay, because that is when and by whom it was done. The first event names where
 * the fork comes from. Every content that its events speak of is copied.
 */
import { CommandInvalid } from '../../core/errors.ts'
import type { RunEvent } from '../../core/run/events.ts'
import type { Environment } from '../../environment/system.ts'
import { artifactsOf } from './bundle.ts'
import { RunLogDamaged } from './errors.ts'
import { chain, emptyLog } from './event-line.ts'
import { sha256Of } from './hash.ts'
import type { Damage, Journal, RunReader } from './journal.ts'

/** Which run is forked after which event, and what the fork is called. */
export interface Fork {
  readonly from: string
  /** The last event that the fork shares. */
  readonly seq: number
  readonly runId: string
}

/**
 * Makes a run that goes on from an event of another; it is there as a whole, or not at all. The log
 * of the other may be damaged behind that event: what comes before its damage can be forked.
 */
export async function forkRun(
  journal: Journal,
  { from, seq, runId }: Fork,
  { ids }: Pick<Environment, 'ids'>,
): Promise<void> {
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

/** Throws `RunLogDamaged` if the damage of a log begins with this event or before it. */
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
