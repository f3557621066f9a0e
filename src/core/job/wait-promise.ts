/**
 * Promise P18 as a predicate over the facts of a job: an acknowledged signal is received once, in
 * order, or it stays unread and is reported when the job has ended.
 */
import { type Fact, hopsOf } from './facts.ts'
import { isSameWait, type Receipt, type SentSignal, type Wait } from './waits.ts'

/** What is wrong with a fact. */
interface Fault {
  readonly seq: number
  readonly what: string
}

/** What the facts so far say about the signals and waits of a job. */
interface Seen {
  /** The signals that no wait has received, in the order in which they were sent. */
  unread: { readonly seq: number; readonly signal: SentSignal }[]
  readonly sent: Set<string>
  readonly read: Set<number>
  readonly begun: Wait[]
  readonly over: Receipt[]
  /** What the job waits for; absent if its last wait is over. */
  current: Wait | undefined
  /** Facts up to this number were not checked: a repair has accepted them. */
  readonly since: number
}

/**
 * Returns what is wrong. `waitState` returns the state of waiting jobs under the rules of a fact.
 * `since` is the number of the repair that the facts follow.
 */
export function findWaitFaults(
  facts: readonly Fact[],
  waitState: (fact: Fact) => string | undefined,
  since = 0,
): Fault[] {
  const faults: Fault[] = []
  const seen: Seen = {
    unread: [],
    sent: new Set(),
    read: new Set(),
    begun: [],
    over: [],
    current: undefined,
    since,
  }
  for (const fact of facts) {
    const { seq, signal, wait, received } = fact
    const found = [
      ...(signal === undefined ? [] : signalFaults(seen, fact, signal, waitState(fact))),
      ...(received === undefined ? [] : receiptFaults(seen, fact, received)),
    ]
    faults.push(...found.map((what) => ({ seq, what })))
    if (wait !== undefined) {
      seen.begun.push(wait)
      seen.current = wait
    }
  }
  return faults
}

/** Returns the facts of the signals that no wait has received. */
export function unreadSignals(facts: readonly Fact[]): Fact[] {
  const read = new Set(facts.map(({ received }) => received?.signal))
  return facts.filter(({ seq, signal }) => signal !== undefined && !read.has(seq))
}

function signalFaults(
  seen: Seen,
  fact: Fact,
  signal: SentSignal,
  waitState: string | undefined,
): string[] {
  const { current } = seen
  const words = JSON.stringify([signal.name, signal.key])
  const isTwice = seen.sent.has(words)
  seen.sent.add(words)
  seen.unread.push({ seq: fact.seq, signal })
  const isAwaited = current?.for === 'signal' && current.name === signal.name
  const isWaiting = fact.from === waitState
  const isWoken = hopsOf(fact).length > 0
  // After a repair it is not known what the job waits for.
  const isKnown = seen.since === 0 || current !== undefined
  return [
    ...(isTwice ? [`the signal ${words} was kept twice`] : []),
    ...(isWoken && !(isWaiting && (isAwaited || !isKnown))
      ? [`the signal ${words} woke a job that does not wait for it`]
      : []),
    ...(!isWoken && isWaiting && isAwaited
      ? [`the signal ${words} did not wake the job that waits for it`]
      : []),
  ]
}

function receiptFaults(seen: Seen, { at }: Fact, receipt: Receipt): string[] {
  const { for: what, name, n, signal } = receipt
  const isTwice = seen.over.some((one) => isSameWait(one, receipt))
  seen.over.push(receipt)
  seen.current = undefined
  const own = `${what} ${JSON.stringify(name)} ${n}`
  const twice = isTwice ? [`the wait ${own} was over twice`] : []
  const next = seen.unread.find((one) => one.signal.name === name)
  if (signal !== undefined) {
    const fault = readFault(seen, receipt, signal, next?.seq)
    seen.read.add(signal)
    seen.unread = seen.unread.filter(({ seq }) => seq !== signal)
    return [...twice, ...(fault === undefined ? [] : [`the wait ${own} ${fault}`])]
  }
  const until = seen.begun.find((one) => isSameWait(one, receipt))?.until
  const isTimed = what !== 'children'
  const isEarly = isTimed && (until === null || (until !== undefined && until > at))
  return [
    ...twice,
    ...(what === 'signal' && next !== undefined
      ? [`the wait ${own} timed out, and the signal of fact ${next.seq} was there`]
      : []),
    ...(isEarly ? [`the wait ${own} ended before its time`] : []),
  ]
}

/** Returns what is wrong with a signal that a wait has received. */
function readFault(
  seen: Seen,
  { for: what }: Receipt,
  signal: number,
  next: number | undefined,
): string | undefined {
  if (what !== 'signal') return 'is not for signals and received one'
  if (seen.read.has(signal)) return `received the signal of fact ${signal} a second time`
  if (signal === next || signal <= seen.since) return undefined
  if (next !== undefined && seen.unread.some(({ seq }) => seq === signal && seq > next)) {
    return `received fact ${signal}, and fact ${next} was sent before`
  }
  return `received fact ${signal}, which is not a signal that was sent to it before`
}
