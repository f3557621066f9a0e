/** What the seeds came to, told while they are played and in the end. */
import { FAULT_KINDS } from './faults.ts'
import type { SimResult } from './world.ts'

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
