/** What the seeds came to, told while they are played and in the end. */
import type { Judged } from './checker.ts'
import { FAULT_KINDS, type FaultKind } from './faults.ts'

/** What a seed came to. */
export interface SimResult {
  readonly seed: number
  readonly violations: readonly Judged[]
  readonly steps: number
  readonly simulatedMs: number
  readonly faults: Readonly<Partial<Record<FaultKind, number>>>
  readonly outcomes: Readonly<Record<string, number>>
  /** How many events of a run were kept. */
  readonly runEvents: number
  /** How many ticks of schedules have a record. */
  readonly ticks: number
  /** How many jobs of groups have started. */
  readonly groupStarts: number
  /** How many signals were received. */
  readonly signals: number
  /** How many jobs were released after those that they waited for. */
  readonly released: number
  /** How often a job was claimed before another one because it is ahead. */
  readonly overtakings: number
  /** How often a client came back with the key of a removed job. */
  readonly keysMet: number
  /** How many jobs were seen blocked past their deadline. */
  readonly blockedLate: number
  /** What happened, in order; the same for the same seed. Empty unless asked for. */
  readonly trace: readonly string[]
}

const PROGRESS_MS = 5000
const SHOWN_MAX = 20
const FACTS_MAX = 12
const DAY_MS = 86_400_000

/** Adds up results. */
export class Report {
  readonly #wanted: number
  readonly #startedAt = performance.now()
  #toldAt = performance.now()
  #seeds = 0
  #steps = 0
  #simulatedMs = 0
  #violations = 0
  #runEvents = 0
  #ticks = 0
  #groupStarts = 0
  #signals = 0
  #released = 0
  #overtakings = 0
  #keysMet = 0
  #blockedLate = 0
  readonly #faults: Record<string, number> = {}
  readonly #outcomes: Record<string, number> = {}

  constructor(wanted: number) {
    this.#wanted = wanted
  }

  /** Whether every seed was played, and none broke a promise. */
  get isClean(): boolean {
    return this.#violations === 0 && this.#seeds === this.#wanted
  }

  add(result: SimResult): void {
    this.#seeds++
    this.#steps += result.steps
    this.#simulatedMs += result.simulatedMs
    this.#runEvents += result.runEvents
    this.#ticks += result.ticks
    this.#groupStarts += result.groupStarts
    this.#signals += result.signals
    this.#released += result.released
    this.#overtakings += result.overtakings
    this.#keysMet += result.keysMet
    this.#blockedLate += result.blockedLate
    addTo(this.#faults, result.faults)
    addTo(this.#outcomes, result.outcomes)
    for (const violation of result.violations) {
      if (++this.#violations > SHOWN_MAX) continue
      const { promise, job, what, facts } = violation
      console.error(`seed ${result.seed}: ${promise}: job ${job} ${what}`)
      for (const fact of facts.slice(-FACTS_MAX)) console.error(`  ${JSON.stringify(fact)}`)
    }
    if (performance.now() - this.#toldAt < PROGRESS_MS) return
    this.#toldAt = performance.now()
    console.error(`${this.#seeds} of ${this.#wanted} seeds, ${this.#rate()} a second`)
  }

  end(asJson: boolean): void {
    const summary = {
      seeds: this.#seeds,
      violations: this.#violations,
      steps: this.#steps,
      simulatedDays: Math.round((this.#simulatedMs / DAY_MS) * 1000) / 1000,
      seedsPerSecond: this.#rate(),
      faultKinds: Object.keys(this.#faults).length,
      // Every kind, so that one which never struck is seen.
      faults: Object.fromEntries(FAULT_KINDS.map((kind) => [kind, this.#faults[kind] ?? 0])),
      outcomes: this.#outcomes,
      runEvents: this.#runEvents,
      ticks: this.#ticks,
      groupStarts: this.#groupStarts,
      signals: this.#signals,
      released: this.#released,
      overtakings: this.#overtakings,
      keysMet: this.#keysMet,
      blockedLate: this.#blockedLate,
    }
    console.log(asJson ? JSON.stringify(summary) : summary)
  }

  #rate(): number {
    return Math.round((this.#seeds / (performance.now() - this.#startedAt)) * 100_000) / 100
  }
}

function addTo(sums: Record<string, number>, counts: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count
}
