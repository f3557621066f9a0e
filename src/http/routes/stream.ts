/**
 * Server-sent events: a message for each new fact, with its position in the ledger as its id. A
 * client that reconnects sends `Last-Event-ID` and misses nothing. Messages have no payloads: a
 * client reads what it needs.
 */
import { untilWoken } from '../../engine/following.ts'
import type { TailEntry, UnreadableFact } from '../../stores/contract/store.ts'
import { Reply } from '../exchange.ts'
import { AFTER, READ, type Route, type RouteCall } from '../route.ts'
import { name } from '../schema.ts'

const BATCH = 500
/** Proxies close connections on which nothing is sent. */
const QUIET_MS = 15_000

async function stream(call: RouteCall): Promise<Reply> {
  const { store } = call.pawl
  const given = call.header('last-event-id') ?? call.query.after
  const release = call.streams.take()
  try {
    const position = given ?? (await store.tailEnd())
    // Read before the answer begins, so that a wrong position is a problem.
    const first = await store.tail(position, BATCH)
    return new Reply(messages(call, position, first, release), {
      'content-type': 'text/event-stream; charset=utf-8',
      'x-accel-buffering': 'no',
    })
  } catch (error) {
    release()
    throw error
  }
}

async function* messages(
  { pawl, query, signal }: RouteCall,
  start: string,
  first: (TailEntry | UnreadableFact)[],
  release: () => void,
): AsyncGenerator<string> {
  const { store, internals } = pawl
  const { timers, clock } = internals.environment
  // A client that never reads does not start the generator; the signal ends it all the same.
  signal.addEventListener('abort', release)
  let [position, entries, quietAt] = [start, first, clock.now() + QUIET_MS]
  try {
    yield 'retry: 1000\n\n'
    while (!signal.aborted) {
      const shown = entries.filter((entry) => isWanted(entry, query.job)).map(messageOf)
      position = entries[entries.length - 1]?.pos ?? position
      if (shown.length > 0) yield shown.join('')
      else if (clock.now() >= quietAt) yield ': still here\n\n'
      if (shown.length > 0 || clock.now() >= quietAt) quietAt = clock.now() + QUIET_MS
      if (entries.length === 0) await untilWoken(store, timers, signal)
      entries = signal.aborted ? [] : await store.tail(position, BATCH)
    }
  } finally {
    release()
  }
}

function isWanted(entry: TailEntry | UnreadableFact, job: string | undefined): boolean {
  const jobId = 'fact' in entry ? entry.fact.jobId : entry.jobId
  return job === undefined || jobId === job
}

/** JSON has no line feeds outside of texts, and escapes those inside. */
function messageOf(entry: TailEntry | UnreadableFact): string {
  if (!('fact' in entry)) {
    const { pos, jobId, seq } = entry
    return `id: ${pos}\nevent: unreadable\ndata: ${JSON.stringify({ pos, jobId, seq })}\n\n`
  }
  const { pos, fact } = entry
  const { jobId, seq, at, trigger, from, to } = fact
  const data = JSON.stringify({ pos, jobId, seq, at, trigger, from, to })
  return `id: ${pos}\nevent: fact\ndata: ${data}\n\n`
}

export const routes: readonly Route[] = [
  {
    method: 'GET',
    path: '/api/v1/stream',
    operation: 'streamFacts',
    summary: 'Sends a message for each new fact of the ledger, until the client disconnects.',
    details:
      'Messages `fact` have pos, jobId, seq, at, trigger, from and to. Their id is the position: ' +
      'send the last one as Last-Event-ID to go on from there.',
    roles: READ,
    query: { job: name('only facts of this job'), after: AFTER },
    headers: { 'Last-Event-ID': 'the id of the last message that was received' },
    lasts: true,
    answer: { media: 'text/event-stream', says: 'messages as server-sent events' },
    run: stream,
  },
]
