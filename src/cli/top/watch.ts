/** `pawl top`: readings on a full screen, or as one block after the other. */
import { span } from '../../core/format.ts'
import { withoutSecrets } from '../../core/redact.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import type { Output } from '../output.ts'
import type { Call } from '../spec.ts'
import { visible } from '../visible.ts'
import { follow, pauseOf, type Reading } from './follow.ts'
import { Screen } from './screen.ts'
import { type Line, linesOf } from './stats-text.ts'

/** How long the store may take to answer before the screen says so. */
const SLOW_MS = 3000
/** How long a reading may take to end when the view is left. */
const LEAVE_MS = 1000

/** Prints a block for each reading; with --json a line. */
export async function watchBlocks(call: Call, intervalMs: number): Promise<undefined> {
  const { output } = call
  const signal = AbortSignal.any([call.interrupted, output.gone])
  const onReading = async (reading: Reading) => {
    if (output.json) output.record(recordOf(call, reading))
    else {
      printLines(output, linesFor(call, reading))
      output.line()
    }
    await output.taken()
  }
  await endSoon(call, follow(call, { intervalMs, signal, onReading }), signal)
  return undefined
}

export function printLines(output: Output, lines: readonly Line[]): void {
  for (const { text, style } of lines) {
    output.line(style === undefined ? text : output.style(style, text))
  }
}

function recordOf({ environment }: Call, reading: Reading): object {
  if (reading.kind === 'outage') {
    const { code, message } = reading
    return { now: environment.clock.now(), outage: { code, message } }
  }
  const { stats, rates } = reading
  const queues = stats.queues.map((queue) => ({
    ...queue,
    endedPerSecond: rates.get(queue.name) ?? null,
  }))
  return { ...stats, queues }
}

function linesFor({ settings }: Call, reading: Reading): Line[] {
  if (reading.kind === 'outage') return [outageLine(reading.message)]
  const store = withoutSecrets(settings.store.value)
  return linesOf(reading.stats, { store, rates: reading.rates })
}

function outageLine(why: string): Line {
  return { text: `The store does not answer, trying again: ${visible(why)}`, style: 'red' }
}

/** What the screen shows: the last numbers, and whether the store answers. */
class View {
  readonly #call: Call
  readonly #intervalMs: number
  #lines: readonly Line[] = []
  #outage: string | undefined
  /** When the store last answered; at first, when the view was opened. */
  #answeredAt: number

  constructor(call: Call, intervalMs: number) {
    this.#call = call
    this.#intervalMs = intervalMs
    this.#answeredAt = call.environment.clock.now()
  }

  take(reading: Reading): void {
    this.#outage = reading.kind === 'outage' ? reading.message : undefined
    if (reading.kind === 'outage') return
    this.#lines = linesFor(this.#call, reading)
    this.#answeredAt = this.#call.environment.clock.now()
  }

  get isSlow(): boolean {
    return this.#silentMs > this.#intervalMs + SLOW_MS
  }

  get #silentMs(): number {
    return this.#call.environment.clock.now() - this.#answeredAt
  }

  lines(): Line[] {
    return [this.#status(), { text: '' }, ...this.#lines]
  }

  #status(): Line {
    if (this.#outage !== undefined) return outageLine(this.#outage)
    if (this.isSlow) {
      return { text: `The store has not answered for ${span(this.#silentMs)}`, style: 'red' }
    }
    const text = `pawl top   every ${span(this.#intervalMs)}   q quits`
    return { text, style: 'dim' }
  }
}

/** Shows the readings until `q`, Ctrl-C or a signal. */
export async function watchScreen(call: Call, intervalMs: number): Promise<ExitCode | undefined> {
  const quit = new AbortController()
  const signal = AbortSignal.any([call.interrupted, call.output.gone, quit.signal])
  const screen = new Screen(call.output, call.stdin)
  const view = new View(call, intervalMs)
  let code: ExitCode | undefined
  const draw = () => {
    if (!signal.aborted) screen.draw(view.lines())
  }
  const onKey = (keys: string) => {
    const isCtrlC = keys.includes('\u0003')
    if (!isCtrlC && !/q/i.test(keys)) return
    code ??= isCtrlC ? EXIT.interrupted : EXIT.ok
    quit.abort()
  }
  const onReading = (reading: Reading) => {
    view.take(reading)
    draw()
  }
  // A store that does not answer must not delay this.
  signal.addEventListener('abort', () => screen.close(), { once: true })
  try {
    screen.open({ onKey, onResize: draw })
    draw()
    const reading = follow(call, { intervalMs, signal, onReading })
    await Promise.all([
      endSoon(call, reading, signal),
      redrawSlow(call, signal, () => view.isSlow && draw()),
    ])
  } finally {
    quit.abort()
    screen.close()
  }
  return code
}

/** Redraws every second while the store does not answer, so that the time goes on. */
async function redrawSlow(call: Call, signal: AbortSignal, draw: () => void): Promise<void> {
  while (!signal.aborted) {
    await pauseOf(call, 1000, signal)
    draw()
  }
}

/** Waits for the end of a reading, but not for long if it was told to stop. */
async function endSoon(call: Call, reading: Promise<void>, signal: AbortSignal): Promise<void> {
  const stopped = new Promise<void>((resolve) => {
    const wait = () => void call.environment.timers.after(LEAVE_MS, resolve)
    if (signal.aborted) wait()
    else signal.addEventListener('abort', wait, { once: true })
  })
  await Promise.race([reading, stopped])
}
