/** What the two stores have in common for a run, and what can be done to each of them alone. */
import type { Store } from 'pawl/sqlite'
import type { UserRow } from '../sim/checker.ts'
import type { Company } from './company.ts'

/** A fault: it begins, lasts, and is over when the promise resolves; to false if it hit nothing. */
export type Fault = () => Promise<unknown>

/** A number from [0, 1), from the seed of the run. */
export type Chance = () => number

/** A store under a run. */
export interface Bed {
  /** Its name for the processes of the run; there may be a network in between. */
  readonly name: string
  /** Opens it for the judge, with nothing in between. */
  open(): Promise<Store>
  /** The faults that only this store can have, by the names under which they are counted. */
  faults(company: Company, chance: Chance): Readonly<Record<string, Fault>>
  /** Ends whatever fault may still last. */
  heal(): Promise<void>
  /** The table of the user's own. */
  rows(): Promise<UserRow[]>
  /** What the database itself finds wrong with its files. */
  damage(): Promise<string[]>
  close(): Promise<void>
}
