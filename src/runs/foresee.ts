/**
 * How items that run again affect other items. An item that runs again writes its outputs again,
 * also those that another item (a fix, for example) has replaced since. An item that reads such an
 * output runs again only if the output differs, which is not known before.
 *
 *   run     the item runs again in any case
 *   skip    nothing that it depends on is made again
 *   check   something that it depends on is made again
 *
 * A verdict is about the next request of the item's node. A loop may request the item again later,
 * after new work whose outputs are unknown.
 *
 * A node that is called again also writes its own artifacts again. The parameters that it passes to
 * an item may come from any artifact. So an item with parameters is checked if something in an
 * earlier state runs again, or if another state wrote an artifact since the item started. Writes of
 * the same state are ignored: otherwise every item of a state would be checked because of the
 * others.
 */
import type { RunMachine } from '../core/run/machine.ts'
import { entryOf, type Run, type WorkItem } from '../core/run/run.ts'
import { staleOutputsOf } from '../core/run/staleness.ts'
import type { ItemExplanation } from './explain.ts'
import type { RunHistory } from './history.ts'
import { isCopy } from './input-files.ts'

export interface Foresight {
  readonly machine: RunMachine
  /** The run after the commands of the plan. */
  readonly run: Run
  readonly history: RunHistory
  readonly strict: boolean
}

/** Corrects the verdict of each item by the verdicts of the others. */
export function foresee(
  foresight: Foresight,
  items: readonly ItemExplanation[],
): ItemExplanation[] {
  const foreseen = new Map(items.map((item) => [item.key, item]))
  for (let hasChanged = true; hasChanged; ) {
    hasChanged = false
    const again = new Again(foresight, [...foreseen.values()])
    for (const item of foreseen.values()) {
      const now = judge(foresight, again, item)
      if (now.verdict === item.verdict) continue
      // A verdict changes at most once, from skip or run to check, so the loop ends.
      foreseen.set(item.key, now)
      hasChanged = true
    }
  }
  return items.map(({ key }) => foreseen.get(key) as ItemExplanation)
}

function judge(foresight: Foresight, again: Again, item: ItemExplanation): ItemExplanation {
  const { run, strict } = foresight
  const own = entryOf(run.work_items, item.key) as WorkItem
  const names = Object.keys(own.inputs)
  const touched = names.find((name) => again.isMadeBy(name, item.key))
  const check = (artifact: string | null): ItemExplanation => ({
    ...item,
    ...{ verdict: 'check', because: 'upstream', artifact },
  })
  if (item.verdict === 'skip') {
    if (touched !== undefined) return check(touched)
    const isGiven = own.declared.some((name) => name.startsWith('param:'))
    if (!isGiven || !again.mayDiffer(item)) return item
    return { ...item, verdict: 'check', because: 'parameters' }
  }
  if (item.verdict !== 'run' || item.because !== 'input_changed') return item
  const stale = staleOutputsOf(run, item.key)
  if (strict && stale.some((name) => !again.isMadeBy(name, item.key))) return item
  const changed = names.filter((name) => {
    const now = entryOf(run.artifacts_index, name)?.sha256
    return now !== undefined && now !== own.inputs[name]
  })
  const isOpen = changed.length > 0 && changed.every((name) => again.isMadeBy(name, item.key))
  return isOpen ? check(changed[0] as string) : item
}

/** The artifacts that are made again, according to the current verdicts. */
class Again {
  readonly #makers = new Map<string, Set<string>>()
  readonly #states = new Set<string>()
  readonly #machine: RunMachine
  readonly #history: RunHistory
  /** The states whose nodes are called again. */
  readonly #called: ReadonlySet<string>

  constructor({ machine, run, history }: Foresight, items: readonly ItemExplanation[]) {
    this.#machine = machine
    this.#history = history
    for (const { key, state, verdict } of items) {
      if (verdict === 'skip') continue
      this.#states.add(state)
      for (const name of history.outputs.get(key) ?? []) this.#note(name, key)
    }
    this.#called = reachable(machine, run.run_state).add(run.run_state)
    this.#noteNodeWrites(run, history)
  }

  /** Notes artifacts that nodes write outside of items, if they may differ from now. */
  #noteNodeWrites(run: Run, { nodeWrites }: RunHistory): void {
    const written = [...nodeWrites]
      // The plan has already taken changed input files.
      .filter(([name]) => !isCopy(run, name))
      .flatMap(([name, byState]) => {
        const now = entryOf(run.artifacts_index, name)?.sha256
        return [...byState].map(([state, contents]) => {
          return { name, state, isOther: [...contents].some((sha256) => sha256 !== now) }
        })
      })
      .filter(({ state }) => this.#called.has(state))
    // First the states that certainly change something: later states depend on them.
    for (const { state, isOther } of written) if (isOther) this.#states.add(state)
    for (const { name, state, isOther } of written) {
      if (isOther || this.isBefore(state)) this.#note(name, NODE)
    }
  }

  /** Returns true if a maker other than this item makes the artifact again. */
  isMadeBy(name: string, key: string): boolean {
    const makers = this.#makers.get(name)
    return makers !== undefined && (makers.size > 1 || !makers.has(key))
  }

  /** Returns true if its node may pass other values than before. */
  mayDiffer({ key, state }: ItemExplanation): boolean {
    if (!this.#called.has(state)) return false
    const since = this.#history.items.get(key)?.seq ?? 0
    for (const [other, seq] of this.#history.lastWrites) {
      if (other !== state && seq > since) return true
    }
    return this.isBefore(state)
  }

  /** Returns true if something runs again in a state before this one. */
  isBefore(state: string): boolean {
    for (const other of this.#states) {
      if (other !== state && reachable(this.#machine, other).has(state)) return true
    }
    return false
  }

  #note(name: string, maker: string): void {
    const makers = this.#makers.get(name) ?? new Set()
    this.#makers.set(name, makers.add(maker))
  }
}

/** The maker of artifacts that a node writes. No item has an empty key. */
const NODE = ''

/** Returns the states that can be reached from a state, in one step or more. */
function reachable({ machine }: RunMachine, from: string): Set<string> {
  const found = new Set<string>()
  const left = [from]
  for (let state = left.pop(); state !== undefined; state = left.pop()) {
    for (const to of machine.byTarget.get(state)?.keys() ?? []) {
      if (found.has(to)) continue
      found.add(to)
      left.push(to)
    }
  }
  return found
}
