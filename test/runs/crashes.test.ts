// A machine stops before any of its file operations, by the death of its process or by the loss of
// its power: what was acknowledged is still there, in order and whole, and the run goes on.
import { decideRun, foldRun, type RunCommand } from 'pawl/rules'
import {
  type Author,
  documentationRun,
  type Journal,
  openFolderJournal,
  type RunEvent,
  RunNotFound,
  type RunWriter,
} from 'pawl/runs'
import {
  type FileCrash,
  type FileFailure,
  SeededRandom,
  SimulatedFiles,
  type TestEnvironment,
  testEnvironment,
} from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { seedOf } from '../support/seed.ts'

const AUTHOR: Author = { trace_id: 't', span_id: 's', actor: 'test' }
const RUN = 'run-1'
/** Many small steps, on a machine that others may use as well. */
const LONG = { timeout: 120_000 }
const STATES = ['CREATED', 'CLONED_INPUTS', 'INGESTED', 'FACTS_READY', 'PLAN_READY', 'DRAFTING']

/** What was promised to whoever wrote, and what was tried beyond it. */
class Ledger {
  readonly acknowledged: RunEvent[] = []
  readonly artifacts: { name: string; sha256: string }[] = []
}

class Machine {
  readonly environment: TestEnvironment
  readonly ledger = new Ledger()
  files: SimulatedFiles

  constructor(seed: number) {
    this.environment = testEnvironment({ seed })
    this.files = new SimulatedFiles(new SeededRandom(seed))
  }

  open(): Promise<Journal> {
    const { files, environment } = this
    return openFolderJournal({ path: 'runs', environment, files, locks: files })
  }

  crash(kind: FileCrash): void {
    this.files = this.files.crash(kind)
  }
}

function factsOf(writer: RunWriter, command: RunCommand) {
  const decision = decideRun(documentationRun, writer.run, command)
  return decision.kind === 'facts' ? decision.facts : []
}

/** Works on the run until it is done or the machine stops; everything acknowledged is noted. */
async function work(machine: Machine, round: number): Promise<void> {
  const { ledger } = machine
  const journal = await machine.open()
  const writer = await openOrCreate(journal, ledger)
  const note = async (command: RunCommand) => {
    ledger.acknowledged.push(...(await writer.append(factsOf(writer, command), AUTHOR)))
  }
  const section = (name: string): RunCommand => ({
    kind: 'change-section',
    section: name,
    to: `round ${round}`,
  })
  await note(section('one'))
  await Promise.all([note(section('two')), note(section('three')), note(section('four'))])
  const name = `artifact ${round % 3}`
  const stored = await writer.writeArtifact(name, Buffer.from(`content ${round}`))
  ledger.artifacts.push({ name, sha256: stored.sha256 })
  await note({ kind: 'write-artifact', name, ...stored, worker: 'w' })
  const { run_state: state } = writer.run
  const next = STATES[STATES.indexOf(state) + 1]
  if (next !== undefined) await note({ kind: 'move', to: next })
  await note(section('five'))
  await journal.close()
}

async function openOrCreate(journal: Journal, ledger: Ledger): Promise<RunWriter> {
  try {
    return await journal.open(RUN, AUTHOR)
  } catch (error) {
    if (!(error instanceof RunNotFound)) throw error
    expect(ledger.acknowledged).toEqual([])
    const facts = decideRun(documentationRun, null, { kind: 'create' })
    if (facts.kind !== 'facts') throw new Error('a run can be created')
    const writer = await journal.create(RUN, facts.facts, AUTHOR)
    const reader = await journal.read(RUN)
    for await (const event of reader.events()) ledger.acknowledged.push(event)
    return writer
  }
}

/** After any crash: readers see what was acknowledged, and whoever opens the run mends it. */
async function check(machine: Machine): Promise<void> {
  const { ledger } = machine
  const journal = await machine.open()
  if (ledger.acknowledged.length > 0) await (await journal.read(RUN)).replay()
  try {
    await (await journal.open(RUN, AUTHOR)).close()
  } catch (error) {
    if (!(error instanceof RunNotFound)) throw error
    expect(ledger.acknowledged).toEqual([])
    return
  }
  const events: RunEvent[] = []
  const reader = await journal.read(RUN)
  for await (const event of reader.events()) events.push(event)
  const ids = new Map(events.map((event) => [event.event_id, event]))
  for (const event of ledger.acknowledged) expect(ids.get(event.event_id)).toEqual(event)
  expect((await reader.replay()).run).toEqual(foldRun(events))
  expect(await journal.peek(RUN)).toEqual(foldRun(events))
  for (const { name, sha256 } of ledger.artifacts) await reader.readArtifact(name, sha256)
  expect(await journal.verify(RUN)).toEqual([])
  await journal.close()
  // What came back though it was never acknowledged is there to stay.
  ledger.acknowledged.splice(0, Number.POSITIVE_INFINITY, ...events)
}

/** How many operations the whole work of one round takes. */
async function operationsOf(seed: number): Promise<number> {
  const machine = new Machine(seedOf(seed))
  await work(machine, 0)
  return machine.files.operations
}

/** Runs until the machine stops; it must be the machine that stopped, and nothing else. */
async function workUntilStopped(machine: Machine, round: number, at: number): Promise<void> {
  machine.files.dieAt(at)
  try {
    await work(machine, round)
  } catch (error) {
    if (!/machine has stopped/.test(String((error as Error).message))) throw error
  }
}

describe('a machine that stops', LONG, () => {
  for (const kind of ['process', 'power'] as const) {
    it(`before any operation, by its ${kind}, keeps what it acknowledged`, async () => {
      const total = await operationsOf(1)
      for (let at = 0; at <= total; at++) {
        const machine = new Machine(seedOf(at))
        await workUntilStopped(machine, 0, at)
        machine.crash(kind)
        await check(machine)
        await work(machine, 1)
        await check(machine)
      }
    })
  }

  it('repeatedly, also during a repair, never loses or repeats an event', async () => {
    for (let seed = 1; seed <= 300; seed++) {
      const random = new SeededRandom(seedOf(seed) * 7919)
      const machine = new Machine(seedOf(seed))
      for (let round = 0; round < 5; round++) {
        await workUntilStopped(machine, round, Math.floor(random.next() * 130))
        machine.crash(random.next() < 0.7 ? 'power' : 'process')
        if (random.next() < 0.5) await check(machine)
      }
      await check(machine)
      await work(machine, 5)
      await check(machine)
    }
  })

  it('is repeatable: the same seed does the same, for 200 seeds', async () => {
    const play = async (seed: number) => {
      const machine = new Machine(seedOf(seed))
      await workUntilStopped(machine, 0, 20 + (seed % 80))
      machine.crash('power')
      await work(machine, 1)
      return machine.ledger.acknowledged
    }
    for (let seed = 1; seed <= 200; seed++) expect(await play(seed)).toEqual(await play(seed))
  })
})

describe('an operation that fails', LONG, () => {
  const kinds: FileFailure[] = ['disk-full', 'sync-fails', 'too-many-files']

  for (const kind of kinds) {
    it(`(${kind}) loses nothing that was acknowledged, and heals`, async () => {
      let refused = 0
      for (let seed = 1; seed <= 60; seed++) {
        const machine = new Machine(seedOf(seed))
        await work(machine, 0)
        const journal = await machine.open()
        const writer = await journal.open(RUN, AUTHOR)
        for (let i = 0; i < 10; i++) {
          if (i % 3 === seed % 3) machine.files.failNext(kind)
          const command: RunCommand = { kind: 'change-section', section: 'x', to: `${i}` }
          const facts = factsOf(writer, command)
          const before = structuredClone(writer.run)
          try {
            machine.ledger.acknowledged.push(...(await writer.append(facts, AUTHOR)))
          } catch (error) {
            expect(error).toMatchObject({ code: 'E_JOURNAL_FAILED' })
            expect(writer.run).toEqual(before)
            refused++
          }
        }
        machine.crash('power')
        await check(machine)
      }
      // Appending opens no file, so that this one only ever hurts the snapshot.
      if (kind !== 'too-many-files') expect(refused).toBeGreaterThan(100)
    })
  }
})

describe('the folder of artifacts', LONG, () => {
  it('is synced by the next write if its creator could not sync it', async () => {
    for (let seed = 1; seed <= 30; seed++) {
      const machine = new Machine(seedOf(seed))
      const journal = await machine.open()
      const writer = await openOrCreate(journal, machine.ledger)
      machine.files.failNext('sync-fails')
      const content = Buffer.from('content')
      await expect(writer.writeArtifact('name', content)).rejects.toMatchObject({
        code: 'E_JOURNAL_FAILED',
      })
      const { sha256 } = await writer.writeArtifact('name', content)
      machine.ledger.artifacts.push({ name: 'name', sha256 })
      machine.crash('power')
      await check(machine)
    }
  })
})
