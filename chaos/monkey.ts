/**
 * The monkey: a deck of faults, shuffled by the seed, played again and again until time is up. No
 * run is too short for every kind to fire, which is why the first decks are played to their end.
 * Some cards are played two at a time; those that must find everything else in order, alone.
 */
import type { Job } from 'pawl'
import type { Chance, Fault } from './bed.ts'
import type { Company, Member, Role } from './company.ts'
import { LEASE_MS, sleep } from './settings.ts'

const PAUSE_MIN_MS = 200
const PAUSE_MAX_MS = 1200
const TOGETHER = 0.35
/** After so many decks a kind that has not fired never will. */
const DECKS_MAX = 3
const LOOK_MS = 100
const LOOKS_MAX = 200

/** A kind of fault, and whether it wants to be the only one. */
interface Card {
  readonly kind: string
  readonly fault: Fault
  readonly alone?: true
}

/** What the monkey may do, beside the faults that only one store knows. */
export interface Zoo {
  readonly company: Company
  readonly workers: number
  readonly chance: Chance
  /** Ends whatever a fault has left. */
  readonly heal: () => Promise<void>
  /** The jobs that are held just now. */
  readonly held: () => Promise<Job[]>
  /** Told of every fault when it begins. */
  readonly onFault: (kind: string) => void
}

/** Plays faults for so long, and gives how often each kind has fired. */
export async function rampage(
  zoo: Zoo,
  own: Readonly<Record<string, Fault>>,
  seconds: number,
): Promise<Record<string, number>> {
  const cards = [
    ...processCards(zoo),
    ...Object.entries(own).map(([kind, fault]): Card => ({ kind, fault })),
  ]
  const fired = Object.fromEntries(cards.map(({ kind }) => [kind, 0]))
  const play = async ({ kind, fault }: Card) => {
    zoo.onFault(kind)
    if ((await fault()) !== false) fired[kind] = (fired[kind] ?? 0) + 1
  }
  const end = performance.now() + seconds * 1000
  for (let deck = 1; ; deck++) {
    // Once time is up, only what has not fired yet is played.
    const isLate = performance.now() > end
    const left = isLate ? cards.filter(({ kind }) => fired[kind] === 0) : cards
    if (left.length === 0 || (isLate && deck > DECKS_MAX)) return fired
    for (const hand of hands(left, zoo.chance)) {
      await Promise.all(hand.map(play))
      await sleep(PAUSE_MIN_MS + zoo.chance() * (PAUSE_MAX_MS - PAUSE_MIN_MS))
      if (!isLate && deck > 1 && performance.now() > end) break
    }
  }
}

/** The deck in an order of its own, cut into what is played at the same time. */
function hands(cards: readonly Card[], chance: Chance): Card[][] {
  const deck = cards
    .map((card) => ({ card, place: chance() }))
    .sort((a, b) => a.place - b.place)
    .map(({ card }) => card)
  const dealt: Card[][] = []
  for (const card of deck) {
    const last = dealt.at(-1)
    const joins = last?.length === 1 && !last[0]?.alone && !card.alone && chance() < TOGETHER
    if (joins) last.push(card)
    else dealt.push([card])
  }
  return dealt
}

function processCards(zoo: Zoo): Card[] {
  const { company, workers, chance } = zoo
  const kill = (role: Role, count: number) => async () => {
    const victims = company.at(role)
    await victims[Math.floor(chance() * victims.length)]?.kill()
    await company.staff(role, count)
  }
  return [
    { kind: 'kills', fault: kill('worker', workers) },
    { kind: 'clientKills', fault: kill('client', 1) },
    { kind: 'operatorKills', fault: kill('operator', 1) },
    {
      kind: 'stops',
      async fault() {
        // A late commit meets the worker that has taken the job over meanwhile.
        const victim = await holderOf(zoo, 'books-late').catch(() => company.at('worker')[0])
        victim?.signal('SIGSTOP')
        await sleep(LEASE_MS * (1.3 + chance()))
        victim?.signal('SIGCONT')
        return victim !== undefined
      },
    },
    { kind: 'terms', fault: () => terminate(zoo), alone: true },
  ]
}

/** A worker that is asked to stop in the middle of a slow job exits with 0, and gives it back. */
async function terminate(zoo: Zoo): Promise<boolean> {
  const { company, workers, heal, held } = zoo
  await heal()
  const before = new Set((await held()).map(({ id }) => id))
  // One that was claimed after the healing has a holder that reaches its store again.
  const victim = await holderOf(zoo, 'slow', ({ id }) => !before.has(id))
  if (victim === undefined) return false
  await company.stop(victim)
  const left = (await held()).filter(({ execution }) => execution?.worker === victim.name)
  const ids = left.map(({ id }) => id).filter((id) => !victim.lost.has(id))
  if (ids.length > 0) company.broken.push(`${victim.name} stopped and still holds ${ids}`)
  await company.staff('worker', workers)
  return true
}

/** A worker that holds a job of this type; waits for one, within bounds. */
async function holderOf(
  { company, held }: Zoo,
  type: string,
  fits: (job: Job) => boolean = () => true,
): Promise<Member | undefined> {
  for (let look = 0; look < LOOKS_MAX; look++) {
    const holders = (await held())
      .filter((job) => job.type === type && fits(job))
      .map(({ execution }) => execution?.worker)
    const found = company.at('worker').find(({ name }) => holders.includes(name))
    if (found !== undefined) return found
    await sleep(LOOK_MS)
  }
  return undefined
}
