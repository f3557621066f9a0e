/**
 * What a command says. Data goes to stdout, talk to stderr. With --json every datum is one line of
 * JSON. Otherwise lists are tables on a terminal, and elsewhere lines of values with tabs in
 * between, without a head, for `cut` and its like.
 *
 * A reader that has gone away (`pawl job list | head -1`) is no error: what is left is not written.
 */
import { shortened, visible, visibleJson } from './visible.ts'

/** A stream that can be written to. */
export interface Sink {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly writableNeedDrain: boolean
  write(text: string): boolean
  once(event: 'drain' | 'close', listener: () => void): unknown
  on(event: 'error', listener: (error: NodeJS.ErrnoException) => void): unknown
}

/** How a command speaks. */
export interface OutputOptions {
  readonly stdout: Sink
  readonly stderr: Sink
  readonly json: boolean
  readonly verbose: boolean
  readonly color: boolean
}

/** A column of a table. */
export interface Column {
  readonly head: string
  /** Numbers stand to the right. */
  readonly right?: boolean
  readonly max?: number
}

const CELL_MAX = 48
const STYLES = { dim: 2, bold: 1, red: 31, green: 32, yellow: 33 } as const

/** A way to show a word. */
export type Style = keyof typeof STYLES

/** Where a command writes to. */
export class Output {
  readonly json: boolean
  readonly verbose: boolean
  readonly isTerminal: boolean
  readonly #stdout: Sink
  readonly #stderr: Sink
  readonly #color: boolean
  readonly #gone = new AbortController()

  constructor({ stdout, stderr, json, verbose, color }: OutputOptions) {
    this.json = json
    this.verbose = verbose
    this.isTerminal = stdout.isTTY === true
    this.#stdout = stdout
    this.#stderr = stderr
    this.#color = color && this.isTerminal
    stdout.on('error', (error) => this.#leave(error))
    // Talk that nobody hears is no reason to fail.
    stderr.on('error', () => {})
  }

  /** Aborted when nobody reads any more. */
  get gone(): AbortSignal {
    return this.#gone.signal
  }

  /** A line of text, which must hold nothing hidden. */
  line(text = ''): void {
    this.text(`${text}\n`)
  }

  /** Text as it is, which must hold nothing hidden. */
  text(text: string): void {
    if (!this.gone.aborted) this.#stdout.write(text)
  }

  /** One line of JSON; `raw` are fields whose values are JSON texts already. */
  record(value: object, raw: Readonly<Record<string, string | undefined>> = {}): void {
    const added = Object.entries(raw)
      .filter((entry): entry is [string, string] => entry[1] !== undefined)
      .map(
        ([name, text]) => `${JSON.stringify(name)}:${isJson(text) ? text : JSON.stringify(text)}`,
      )
    const own = JSON.stringify(value).slice(1, -1)
    this.line(visibleJson(`{${[own, ...added].filter((part) => part !== '').join(',')}}`))
  }

  /** Rows of values, each made harmless; nothing at all where there are none. */
  table(columns: readonly Column[], rows: readonly (readonly string[])[]): void {
    if (rows.length === 0) return
    const cells = rows.map((row) => row.map(visible))
    if (!this.isTerminal) {
      for (const row of cells) this.line(row.join('\t'))
      return
    }
    const shown = cells.map((row) =>
      row.map((cell, i) => shortened(cell, columns[i]?.max ?? CELL_MAX)),
    )
    const widths = columns.map(({ head }, i) =>
      Math.max(head.length, ...shown.map((row) => lengthOf(row[i] ?? ''))),
    )
    const layOut = (row: readonly string[]) =>
      row
        .map((cell, i) => pad(cell, widths[i] ?? 0, columns[i]?.right === true))
        .join('  ')
        .trimEnd()
    this.line(this.style('dim', layOut(columns.map(({ head }) => head))))
    for (const row of shown) this.line(layOut(row))
  }

  /** A word in a style, where colours are wanted. */
  style(style: Style, text: string): string {
    return this.#color ? `\u001b[${STYLES[style]}m${text}\u001b[0m` : text
  }

  /** Talk; its data must be harmless. */
  say(text: string): void {
    this.#stderr.write(`${text}\n`)
  }

  /** Talk as one line of JSON. */
  sayRecord(value: object): void {
    this.say(visibleJson(JSON.stringify(value)))
  }

  /** Talk for those who asked for it. */
  explain(text: string): void {
    if (this.verbose) this.say(text)
  }

  /** Resolves when the reader has taken what was written. */
  async taken(): Promise<void> {
    if (this.gone.aborted || !this.#stdout.writableNeedDrain) return
    await new Promise<void>((resolve) => {
      this.#stdout.once('drain', resolve)
      this.gone.addEventListener('abort', () => resolve(), { once: true })
    })
  }

  #leave(error: NodeJS.ErrnoException): void {
    if (error.code !== 'EPIPE') throw error
    this.#gone.abort()
  }
}

/** Whether a text is JSON; a payload may be something else, such as a cipher. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function lengthOf(text: string): number {
  return [...text].length
}

function pad(text: string, width: number, right: boolean): string {
  const space = ' '.repeat(Math.max(0, width - lengthOf(text)))
  return right ? space + text : text + space
}
