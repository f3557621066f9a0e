/** Lifecycles by number, in the forms that statements take as parameters. */
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import { type MachineRow, Machines } from './machines.ts'

/** How a database takes lists of numbers, and texts by number. */
export interface MachineForms {
  numbers(list: readonly number[]): string
  texts(byNumber: ReadonlyMap<number, string>): string
}

/** The lifecycles of a store. Parameters are made when rows are loaded, because claims use them. */
export class StatementMachines extends Machines {
  readonly #forms: MachineForms
  #known: string
  #readyStates: string
  #heldStates: string
  #claimPaths: string

  constructor(lifecycles: readonly Lifecycle[], forms: MachineForms) {
    super(lifecycles)
    this.#forms = forms
    this.#known = forms.numbers([])
    this.#readyStates = forms.texts(new Map())
    this.#heldStates = this.#readyStates
    this.#claimPaths = this.#readyStates
  }

  /** The numbers whose jobs this process decides on. */
  get known(): string {
    return this.#known
  }

  /** The ready state of each number. */
  get readyStates(): string {
    return this.#readyStates
  }

  /** The held state of each number. */
  get heldStates(): string {
    return this.#heldStates
  }

  /** The path of a claim of each number. */
  get claimPaths(): string {
    return this.#claimPaths
  }

  override load(rows: readonly MachineRow[]): void {
    super.load(rows)
    const numbers = [...this.byId.keys(), ...this.routes.keys()]
    const texts = (textOf: (lifecycle: Lifecycle) => string) =>
      this.#forms.texts(new Map(numbers.map((one) => [one, textOf(this.at(one) as Lifecycle)])))
    this.#known = this.#forms.numbers(numbers)
    this.#readyStates = texts(({ ready }) => ready)
    this.#heldStates = texts(({ held }) => held)
    this.#claimPaths = texts(({ ready, held }) => `${ready}>${held}`)
  }
}
