/**
 * What a page shows of the server. One request is in flight at a time: news that arrive meanwhile
 * cause one more request after it. An error keeps what is on the screen.
 */
import { signal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Refused } from './client.ts'
import { type FactHint, mayRefresh, onFacts } from './live.ts'

export interface View<T> {
  readonly data: T | undefined
  readonly error: Refused | undefined
  /** Whether the data belong to the present key. */
  readonly current: boolean
  readonly reload: () => void
}

export interface ViewOptions {
  /** Which new facts cause a request; none if absent. */
  readonly on?: (fact: FactHint) => boolean
  /** Asks again after this time, for what no fact reports; never if absent. */
  readonly everyMs?: number
}

/** When the oldest news arrived that no view shows yet; undefined if all do. */
export const behindSince = signal<number | undefined>(undefined)

const any = () => true
/** Every new fact causes a request. */
export const ON_FACTS: ViewOptions = { on: any, everyMs: 5000 }

class Loader<T> {
  #flight: AbortController | undefined
  #again = false
  #closed = false
  readonly #load: (signal: AbortSignal) => Promise<T>
  readonly #show: (result: { data?: T; error?: Refused }) => void

  constructor(
    load: (signal: AbortSignal) => Promise<T>,
    show: (result: { data?: T; error?: Refused }) => void,
  ) {
    this.#load = load
    this.#show = show
  }

  readonly reload = (): void => {
    if (this.#closed) return
    if (this.#flight !== undefined) this.#again = true
    else void this.#run()
  }

  close(): void {
    this.#closed = true
    this.#flight?.abort()
  }

  async #run(): Promise<void> {
    const flight = new AbortController()
    this.#flight = flight
    const startedAt = Date.now()
    try {
      const data = await this.#load(flight.signal)
      if (!this.#closed) this.#show({ data })
      if ((behindSince.value ?? startedAt) <= startedAt) behindSince.value = undefined
    } catch (error) {
      if (!this.#closed && !flight.signal.aborted) this.#show({ error: refusedBy(error) })
    }
    this.#flight = undefined
    if (this.#again) {
      this.#again = false
      this.reload()
    }
  }
}

function refusedBy(error: unknown): Refused {
  if (error instanceof Refused) return error
  return new Refused(0, { title: String(error), code: 'DASHBOARD', hint: '' })
}

interface Shown<T> {
  readonly key: string
  readonly data: T | undefined
  readonly error: Refused | undefined
}

/** Loads what a page shows, and again when there are news. A new key loads at once. */
export function useView<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  { on, everyMs }: ViewOptions = {},
): View<T> {
  const [shown, setShown] = useState<Shown<T>>({ key, data: undefined, error: undefined })
  const latest = useRef({ load, on })
  latest.current = { load, on }
  const loader = useRef<Loader<T>>()

  useEffect(() => {
    const own = new Loader<T>(
      (signal) => latest.current.load(signal),
      ({ data, error }) =>
        setShown((before) => ({
          key,
          data: data ?? (before.key === key || error !== undefined ? before.data : undefined),
          error,
        })),
    )
    loader.current = own
    own.reload()
    const stop = onFacts((facts) => {
      const { on: wants } = latest.current
      if (wants === undefined || !mayRefresh()) return
      if (facts.length > 0 && !facts.some(wants)) return
      behindSince.value ??= Date.now()
      own.reload()
    })
    const timer = everyMs && window.setInterval(() => mayRefresh() && own.reload(), everyMs)
    return () => {
      stop()
      if (timer) clearInterval(timer)
      own.close()
    }
  }, [key, everyMs])

  return {
    data: shown.data,
    error: shown.error,
    current: shown.key === key,
    reload: () => loader.current?.reload(),
  }
}
