/**
 * Follows the ledger: one connection for the whole page. Messages have no data, so views ask again
 * for what they show, at most every half second. A page that is paused or hidden has no connection
 * and asks for nothing.
 */
import { effect, signal } from '@preact/signals'
import { authorization, BASE, reach, refusalOf } from './client.ts'
import { caller } from './session.ts'

/** A new fact, as the stream reports it. */
export interface FactHint {
  readonly pos: string
  readonly jobId: string
  readonly seq: number
  readonly at: number
  readonly trigger: string
  readonly from: string | null
  readonly to: string
}

export type Connection = 'connecting' | 'live' | 'paused' | 'lost'

export const connection = signal<Connection>('connecting')
const PAUSED = 'pawl.paused'
export const paused = signal(sessionStorage.getItem(PAUSED) === 'yes')
const hidden = signal(document.hidden)

export function setPaused(value: boolean): void {
  paused.value = value
  sessionStorage.setItem(PAUSED, value ? 'yes' : 'no')
}

/** Whether views may ask for news by themselves. */
export function mayRefresh(): boolean {
  return !paused.value && !hidden.value
}

type Listener = (facts: readonly FactHint[]) => void
const listeners = new Set<Listener>()

/** Calls a function with new facts; with none when the page may have missed some. */
export function onFacts(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

const FLUSH_MS = 500
const HINTS_MAX = 2000
let waiting: FactHint[] = []
let timer: number | undefined

function add(fact: FactHint): void {
  if (waiting.length < HINTS_MAX) waiting.push(fact)
  timer ??= window.setTimeout(flush, FLUSH_MS)
}

function flush(): void {
  timer = undefined
  const facts = waiting
  waiting = []
  for (const listener of [...listeners]) listener(facts)
}

const RETRY_MIN_MS = 1000
const RETRY_MAX_MS = 15_000

async function follow(ending: AbortSignal): Promise<void> {
  let position: string | undefined
  let retryMs = RETRY_MIN_MS
  while (!ending.aborted) {
    connection.value = 'connecting'
    try {
      const again: Record<string, string> =
        position === undefined ? {} : { 'last-event-id': position }
      const headers = { accept: 'text/event-stream', ...authorization(), ...again }
      const response = await reach(`${BASE}api/v1/stream`, { headers, signal: ending })
      if (!response.ok || response.body === null) throw await refusalOf(response)
      connection.value = 'live'
      // What happened while there was no connection is not sent again.
      if (position === undefined) flush()
      for await (const fact of messagesOf(response.body)) {
        position = fact.pos
        retryMs = RETRY_MIN_MS
        add(fact)
      }
    } catch {
      if (ending.aborted) return
    }
    connection.value = 'lost'
    await new Promise((resolve) => setTimeout(resolve, retryMs))
    retryMs = Math.min(RETRY_MAX_MS, retryMs * 2)
  }
}

async function* messagesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<FactHint> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      text += decoder.decode(value, { stream: true })
      const messages = text.split('\n\n')
      text = messages.pop() ?? ''
      for (const message of messages) {
        const data = /^data: (.*)$/m.exec(message)?.[1]
        if (data !== undefined && /^event: fact$/m.test(message)) yield JSON.parse(data)
      }
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

/** Connects when the caller is known, and disconnects while the page is paused or hidden. */
export function startLive(): void {
  document.addEventListener('visibilitychange', () => {
    hidden.value = document.hidden
  })
  effect(() => {
    if (caller.value === undefined) return
    if (paused.value || hidden.value) {
      connection.value = 'paused'
      return
    }
    const ending = new AbortController()
    void follow(ending.signal)
    return () => {
      ending.abort()
      waiting = []
      clearTimeout(timer)
      timer = undefined
    }
  })
}
