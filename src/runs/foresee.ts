/**
 * What doing some items again does to the others. An item that is done again writes its outputs
 * again, also those that another item has replaced since then, as a fix does. Whoever reads such an
 * output may have to be done again, or, if it is as it was then, may not: nobody can know before.
 *
 *   run     it is done again, whatever comes of the others
 *   skip    nothing that it depends on is made again
 *   check   something that it depends on is made again
 *
 * A verdict is about the next time that the item's node asks for it. A loop may ask for it again
 * later, after work that was never done before: what that work writes is unknown until then.
 *
 * A node that is called again also writes its own artifacts again. What it hands to an item as a
 * parameter may come from any artifact, so an item with parameters is checked if something is done
 * again in a state before its own, or was written in another state since it was started. Values
 * that come from what the same state has written are not foreseen: otherwise each of many items of
 * one state would have to be checked because of the others.
 */
import type { RunMachine } from '../core/run/machine.ts'
import { entryOf, type Run, type WorkItem } from '../core/run/run.ts'
import { staleOutputsOf } from '../core/run/staleness.ts'
import type { ItemExplanation } from './explain.ts'
import type { RunHistory } from './history.ts'
import { isCopy } from './input-files.ts'

/** What the foresight is made from. */
export interface Foresight {
  readonly machine: RunMachine
  /** The run after the plan of its resumption. */
  readonly run: Run
  readonly history: RunHistory
  readonly strict: boolean
}

/** Corrects what is said of each item by what is said of the others. */
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
      // A verdict goes from skip or run to check, once, so this comes to an end.
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
    if (!isGiven || !again.isAskedAnew(item)) return item
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

/** What is made again, as far as it is known by now. */
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

  /** What nodes write by themselves, as far as it may differ from what is there now. */
  #noteNodeWrites(run: Run, { nodeWrites }: RunHistory): void {
    const written = [...nodeWrites]
      // The plan has taken inputs from outside already.
      .filter(([name]) => !isCopy(run, name))
      .flatMap(([name, byState]) => {
        const now = entryOf(run.artifacts_index, name)?.sha256
        return [...byState].map(([state, contents]) => {
          return { name, state, isOther: [...contents].some((sha256) => sha256 !== now) }
        })
      })
      .filter(({ state }) => this.#called.has(state))
    // First all states that certainly change something: later states depend on them.
    for (const { state, isOther } of written) if (isOther) this.#states.add(state)
    for (const { name, state, isOther } of written) {
      if (isOther || this.isBefore(state)) this.#note(name, NODE)
    }
  }

  /** Whether somebody else than this item makes it again. */
  isMadeBy(name: string, key: string): boolean {
    const makers = this.#makers.get(name)
    return makers !== undefined && (makers.size > 1 || !makers.has(key))
  }

  /** Whether its node may hand it other values than the last time. */
  isAskedAnew({ key, state }: ItemExplanation): boolean {
    if (!this.#called.has(state)) return false
    const since = this.#history.items.get(key)?.seq ?? 0
    for (const [other, seq] of this.#history.lastWrites) {
      if (other !== state && seq > since) return true
    }
    return this.isBefore(state)
  }

  /** Whether something is done again in a state before this one. */
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

/** Stands for the node of a state among those who write; no item has an empty key. */
const NODE = ''

/** The states to which edges lead from a state, in one step or more. */
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
