/**
 * One run on files that are torn, lost, refused and damaged. Its holder decides and appends what
 * the seed wants, dies with its process or with the power of its machine, and the next one goes on.
 * What was acknowledged must be there, in order and whole, after every death; the snapshot must be
 * the fold of the log; damage must be told, and never be taken for a run.
 */
import { PawlError } from 'pawl'
import { checkRun, decideRun, encode, foldRun, type RunCommand } from 'pawl/rules'
import {
  type Author,
  documentationRun,
  type Journal,
  openFolderJournal,
  type Run,
  type RunEvent,
  type RunFact,
  RunLogDamaged,
  RunNotFound,
  type RunWriter,
} from 'pawl/runs'
import type { Random } from 'pawl/testing'
import { SimulatedFiles, type TestEnvironment, testEnvironment } from 'pawl/testing'
import type { Judged } from './checker.ts'
import type { Faults } from './faults.ts'

const AUTHOR: Author = { trace_id: 'trace', span_id: 'span', actor: 'worker' }
const RUN = 'run'
const LOG = 'runs/run/events.ndjson'
const SNAPSHOT = 'runs/run/snapshot.json'
const ROUNDS = 4
/** What shows that the work of a fix ran; ends are no part of it. */
const FIX_WORK: readonly string[] = [
  'ARTIFACT_WRITTEN',
  'WORK_ITEM_FINISHED',
  'WORK_ITEM_FAILED',
  'RUN_STATE_CHANGED',
]
/** Whether the way goes on to FIXING; the other one is closed to a run that did not pass. */
function fixes({ run_state, validation }: Run): boolean {
  return run_state === 'VALIDATING' && validation?.ok === false
}

/** What follows an append of which only the beginning reached the disk. */
const CUT: readonly string[] = ['LOG_TAIL_DISCARDED', 'RESUME_REWIND']
const ENDS = ['FAILED', 'CANCELLED']
const FAILURES = {
  'file-disk-full': 'disk-full',
  'file-sync-fails': 'sync-fails',
  'file-handles-gone': 'too-many-files',
} as const

/** Plays the run of a seed; gives what it breaks, and how many events it came to. */
export async function simulateRun(
  seed: number,
  random: Random,
  faults: Faults,
): Promise<{ readonly judged: readonly Judged[]; readonly events: number }> {
  const world = new RunWorld(seed, random, faults)
  await world.play()
  return { judged: world.judged, events: world.events }
}

class RunWorld {
  readonly judged: Judged[] = []
  readonly #random: Random
  readonly #faults: Faults
  readonly #environment: TestEnvironment
  #files: SimulatedFiles
  /** Whether anything can go wrong in this round. */
  #mayFail = false
  /** The acknowledged events, in order. */
  #acknowledged: RunEvent[] = []
  readonly #artifacts: { readonly name: string; readonly sha256: string }[] = []

  constructor(seed: number, random: Random, faults: Faults) {
    this.#random = random
    this.#faults = faults
    this.#environment = testEnvironment({ seed })
    this.#files = new SimulatedFiles(random)
  }

  get events(): number {
    return this.#acknowledged.length
  }

  async play(): Promise<void> {
    for (let round = 0; round < ROUNDS && this.judged.length === 0; round++) {
      this.#environment.advance(this.#faults.between(1, 60_000))
      const power = this.#faults.strikes('file-power-fails')
      const isDeath = this.#faults.strikes('file-holder-dies') || power
      this.#mayFail = isDeath
      if (isDeath) this.#files.dieAt(this.#files.operations + this.#faults.between(0, 150))
      await this.#work()
      // The next reader is another process, on a machine that may have lost its power.
      this.#files = this.#files.crash(power ? 'power' : 'process')
      await this.#check()
    }
    if (this.judged.length === 0) await this.#damage()
  }

  /** Works on the run until it has had enough, or dies. */
  async #work(): Promise<void> {
    try {
      const journal = await this.#open()
      const writer = await this.#hold(journal)
      for (let i = this.#faults.between(5, 30); i > 0; i--) await this.#act(writer)
      await journal.close()
    } catch (error) {
      this.#expect(error)
    }
  }

  /** An error must come from a fault, with its code; without a fault there is no error. */
  #expect(error: unknown): void {
    const isDeath = /machine has stopped/.test(String(error))
    if (this.#mayFail && (isDeath || error instanceof PawlError)) return
    this.#blame('P16', `an error out of nothing: ${String(error)}`)
  }

  async #hold(journal: Journal): Promise<RunWriter> {
    try {
      const writer = await journal.open(RUN, AUTHOR)
      const state = documentationRun.machine.states.get(writer.run.run_state as never)
      if (state?.transitional)
        await this.#applyCommand(writer, { kind: 'rewind', reason: 'resume' })
      return writer
    } catch (error) {
      if (!(error instanceof RunNotFound)) throw error
      const facts = this.#decide(null, { kind: 'create', maxFixAttempts: 2 })
      return journal.create(RUN, facts, AUTHOR)
    }
  }

  async #act(writer: RunWriter): Promise<void> {
    for (const [kind, failure] of Object.entries(FAILURES)) {
      if (!this.#faults.strikes(kind as keyof typeof FAILURES)) continue
      this.#files.failNext(failure)
      this.#mayFail = true
    }
    const command = this.#choose(writer)
    try {
      if (command === 'artifact') await this.#writeArtifact(writer)
      else await this.#applyCommand(writer, command)
    } catch (error) {
      // What could not be written was not, and the holder goes on, unless it is dead.
      if (/machine has stopped/.test(String(error))) throw error
      this.#expect(error)
    }
  }

  async #applyCommand(writer: RunWriter, command: RunCommand): Promise<void> {
    const events = await writer.append(this.#decide(writer, command), AUTHOR)
    this.#acknowledged.push(...events)
  }

  #decide(writer: RunWriter | null, command: RunCommand): readonly RunFact[] {
    const decision = decideRun(documentationRun, writer?.run ?? null, command)
    return decision.kind === 'facts' ? decision.facts : []
  }

  async #writeArtifact(writer: RunWriter): Promise<void> {
    const name = `artifact ${this.#faults.between(0, 3)}`
    const content = Buffer.from(`content ${this.#faults.between(0, 1000)}`)
    const stored = await writer.writeArtifact(name, content)
    this.#artifacts.push({ name, sha256: stored.sha256 })
    await this.#applyCommand(writer, { kind: 'write-artifact', name, ...stored, worker: 'w' })
  }

  #choose({ run }: RunWriter): RunCommand | 'artifact' {
    const key = `item ${this.#faults.between(0, 3)}`
    const inputs = { source: 'a'.repeat(64) }
    const states = [...(documentationRun.machine.byTarget.get(run.run_state as never) ?? [])]
    const next = states.map(([state]) => state).filter((state) => !ENDS.includes(state))
    const to = next[this.#faults.between(0, next.length)] ?? 'DONE'
    const validation = { kind: 'record-validation', ok: this.#random.next() < 0.2 } as const
    const move = { kind: 'move', to: fixes(run) ? 'FIXING' : to } as const
    const commands: readonly (RunCommand | 'artifact')[] = [
      ...[move, move, move, move],
      { kind: 'start-item', key, inputs, worker: 'w' },
      { kind: 'finish-item', key },
      { kind: 'reset-fixes', because: 'source' },
      ...[validation, validation],
      { kind: 'change-section', section: 'intro', to: `draft ${this.#faults.between(0, 9)}` },
      'artifact',
    ]
    return commands[this.#faults.between(0, commands.length)] as RunCommand | 'artifact'
  }

  /** The next process that opens the run finds what was acknowledged, and repairs the rest. */
  async #check(): Promise<void> {
    try {
      const journal = await this.#open()
      await (await journal.open(RUN, AUTHOR)).close()
      const reader = await journal.read(RUN)
      const events: RunEvent[] = []
      for await (const event of reader.events()) events.push(event)
      this.#compare(events)
      if (textOf([await journal.peek(RUN)]) !== textOf([foldRun(events)])) {
        this.#blame('P9', 'its snapshot is not the fold of its log')
      }
      for (const { name, sha256 } of this.#artifacts) await reader.readArtifact(name, sha256)
      for (const { message } of await journal.verify(RUN)) this.#blame('P9', message)
      await journal.close()
      // What was written without an acknowledgement stays as well.
      this.#acknowledged = events
    } catch (error) {
      if (error instanceof RunNotFound && this.#acknowledged.length === 0) return
      const isLog = error instanceof RunLogDamaged
      this.#blame(isLog ? 'P9' : 'P1', `${error instanceof Error ? error.message : error}`)
    }
  }

  #compare(events: readonly RunEvent[]): void {
    const byId = new Map(events.map((event) => [event.event_id, event]))
    for (const event of this.#acknowledged) {
      if (textOf([byId.get(event.event_id)]) === textOf([event])) continue
      this.#blame('P1', `event ${event.seq} was acknowledged, and is gone`)
    }
    for (const { seq, what } of checkRun(documentationRun, events)) {
      this.#blame('P2', `${what} (event ${seq})`)
    }
    this.#compareFixes(events)
    this.#compareItems(events)
  }

  /** P5: a fix attempt is counted if its work ran, once, and only then. */
  #compareFixes(events: readonly RunEvent[]): void {
    const run = foldRun(events)
    let fixes = 0
    let visit: 'none' | 'entered' | 'counted' = 'none'
    for (const [i, { type, data }] of events.entries()) {
      if (type === 'FIX_ATTEMPTED') {
        const next = events[i + 1]?.type ?? 'LOG_TAIL_DISCARDED'
        // The process may have died between the count and the work that it counts.
        if (!FIX_WORK.includes(next) && !CUT.includes(next)) this.#blame('P5', 'no fix ran')
        fixes++
        visit = 'counted'
      } else if (type === 'FIX_ATTEMPTS_RESET') fixes = 0
      else if (visit === 'entered' && FIX_WORK.includes(type)) this.#blame('P5', 'a fix is free')
      if (type === 'RUN_STATE_CHANGED') visit = data.to_state === 'FIXING' ? 'entered' : 'none'
      if (type === 'RESUME_REWIND') visit = 'none'
      if (run !== null && fixes > run.max_fix_attempts) this.#blame('P5', `${fixes} fixes ran`)
    }
    if (run !== null && run.fix_attempts !== fixes) {
      this.#blame('P5', `${fixes} fixes ran, of which it counts ${run.fix_attempts}`)
    }
  }

  /** P14: a finished item is not begun again as if it were new. */
  #compareItems(events: readonly RunEvent[]): void {
    const finished = new Set<string>()
    for (const { type, data } of events) {
      if (type === 'WORK_ITEM_FINISHED') finished.add(data.key)
      if (type !== 'WORK_ITEM_STARTED' || !finished.has(data.key)) continue
      if (data.because === 'new') this.#blame('P14', `${data.key} was finished, and begun again`)
      finished.delete(data.key)
    }
  }

  /** A flipped bit is mended where it can be, told where it cannot, and never believed. */
  async #damage(): Promise<void> {
    if (this.#acknowledged.length === 0 || !this.#faults.strikes('file-bit-flip')) return
    const isLog = this.#random.next() < 0.7
    this.#files.corrupt(isLog ? LOG : SNAPSHOT)
    const before = textOf(this.#acknowledged)
    try {
      const journal = await this.#open()
      await (await journal.open(RUN, AUTHOR)).close()
      const events: RunEvent[] = []
      for await (const event of (await journal.read(RUN)).events()) events.push(event)
      // The last line feed may have been hit: then the last line counts as torn, which is told.
      const told = events.filter(({ type }) => type !== 'LOG_TAIL_DISCARDED')
      const isTold = told.length < events.length && before.startsWith(textOf(told))
      if (textOf(events) !== before && !isTold) {
        this.#blame('P16', 'its log was damaged, and nobody noticed')
      }
    } catch (error) {
      if (isLog && error instanceof RunLogDamaged) return
      this.#blame('P16', `a damaged ${isLog ? 'log' : 'snapshot'} gave ${String(error)}`)
    }
  }

  #open(): Promise<Journal> {
    const files = this.#files
    const environment = this.#environment
    return openFolderJournal({ path: 'runs', environment, files, locks: files })
  }

  #blame(promise: string, what: string): void {
    this.judged.push({ promise, job: RUN, what, facts: [] })
  }
}

/** Values as lines in canonical JSON, so that their fields may stand in any order. */
function textOf(values: readonly unknown[]): string {
  return values.map((value) => `${value === undefined ? '' : encode(value)}\n`).join('')
}
