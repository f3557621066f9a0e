/**
 * The output of commands. Data goes to stdout, messages go to stderr. With --json each record is
 * one line of JSON. Otherwise lists are tables on a terminal, and lines of values separated by tabs
 * elsewhere, without a header, for tools like `cut`.
 *
 * If the reader closes the pipe (`pawl job list | head -1`), the rest is not written; that is not
 * an error.
 */
import { shortened, visible, visibleJson } from './visible.ts'

export interface Sink {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
  readonly writableNeedDrain: boolean
  write(text: string): boolean
  once(event: 'drain' | 'close', listener: () => void): unknown
  on(event: 'error', listener: (error: NodeJS.ErrnoException) => void): unknown
  on(event: 'resize', listener: () => void): unknown
  off(event: 'resize', listener: () => void): unknown
}

export interface OutputOptions {
  readonly stdout: Sink
  readonly stderr: Sink
  readonly json: boolean
  readonly verbose: boolean
  readonly color: boolean
}

export interface Column {
  readonly head: string
  /** Aligns to the right, for numbers. */
  readonly right?: boolean
  readonly max?: number
}

const CELL_MAX = 48
const ERASE_LINE = '\r\u001b[K'
const STYLES = { dim: 2, bold: 1, red: 31, green: 32, yellow: 33 } as const

export type Style = keyof typeof STYLES

export class Output {
  readonly json: boolean
  readonly verbose: boolean
  readonly isTerminal: boolean
  readonly #stdout: Sink
  readonly #stderr: Sink
  readonly #color: boolean
  readonly #gone = new AbortController()
  readonly #showsProgress: boolean
  #hasProgress = false

  constructor({ stdout, stderr, json, verbose, color }: OutputOptions) {
    this.json = json
    this.verbose = verbose
    this.isTerminal = stdout.isTTY === true
    this.#stdout = stdout
    this.#stderr = stderr
    this.#color = color && this.isTerminal
    this.#showsProgress = stderr.isTTY === true && !json
    stdout.on('error', (error) => this.#leave(error))
    // A closed stderr must not fail the command.
    stderr.on('error', () => {})
  }

  /** Aborted when the reader has closed stdout. */
  get gone(): AbortSignal {
    return this.#gone.signal
  }

  /** The size of the terminal; 80 × 24 if it is not known. */
  get size(): { readonly columns: number; readonly rows: number } {
    return { columns: this.#stdout.columns || 80, rows: this.#stdout.rows || 24 }
  }

  /** Calls the listener when the terminal has another size; returns a function that ends it. */
  onResize(listener: () => void): () => void {
    this.#stdout.on('resize', listener)
    return () => this.#stdout.off('resize', listener)
  }

  /** Writes a line; the caller must have made it visible. */
  line(text = ''): void {
    this.text(`${text}\n`)
  }

  /** Writes a text as it is; the caller must have made it visible. */
  text(text: string): void {
    this.#endProgress()
    if (!this.gone.aborted) this.#stdout.write(text)
  }

  /** Writes one line of JSON; `raw` has fields whose values are already JSON texts. */
  record(value: object, raw: Readonly<Record<string, string | undefined>> = {}): void {
    const added = Object.entries(raw)
      .filter((entry): entry is [string, string] => entry[1] !== undefined)
      .map(
        ([name, text]) => `${JSON.stringify(name)}:${isJson(text) ? text : JSON.stringify(text)}`,
      )
    const own = JSON.stringify(value).slice(1, -1)
    this.line(visibleJson(`{${[own, ...added].filter((part) => part !== '').join(',')}}`))
  }

  /** Writes a table; hidden characters are escaped. Writes nothing if there are no rows. */
  table(columns: readonly Column[], rows: readonly (readonly string[])[]): void {
    if (rows.length === 0) return
    const cells = rows.map((row) => row.map(visible))
    if (!this.isTerminal) {
      for (const row of cells) this.line(row.join('\t'))
      return
    }
    const [head = '', ...lines] = tableLines(columns, cells)
    this.line(this.style('dim', head))
    for (const line of lines) this.line(line)
  }

  /** Adds a style if colours are on. */
  style(style: Style, text: string): string {
    return this.#color ? `\u001b[${STYLES[style]}m${text}\u001b[0m` : text
  }

  /** Writes a message to stderr; the caller must have made it visible. */
  say(text: string): void {
    this.#endProgress()
    this.#stderr.write(`${text}\n`)
  }

  /**
   * Shows how far long work has come, on one line of stderr that the next output replaces. Writes
   * nothing if stderr is not a terminal, or with --json.
   */
  progress(text: string): void {
    if (!this.#showsProgress) return
    this.#stderr.write(`${ERASE_LINE}${text} …`)
    this.#hasProgress = true
  }

  #endProgress(): void {
    if (!this.#hasProgress) return
    this.#hasProgress = false
    this.#stderr.write(ERASE_LINE)
  }

  /** Writes a message to stderr as one line of JSON. */
  sayRecord(value: object): void {
    this.say(visibleJson(JSON.stringify(value)))
  }

  /** Writes a message to stderr with --verbose. */
  explain(text: string): void {
    if (this.verbose) this.say(text)
  }

  /** Resolves when the stream can take more. */
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

/** Lays out a header and rows; the caller must have made the cells visible. */
export function tableLines(
  columns: readonly Column[],
  cells: readonly (readonly string[])[],
): string[] {
  const shown = cells.map((row) =>
    row.map((cell, i) => shortened(cell, columns[i]?.max ?? CELL_MAX)),
  )
  const widths = columns.map(({ head }, i) =>
    Math.max(head.length, ...shown.map((row) => lengthOf(row[i] ?? ''))),
  )
  return [columns.map(({ head }) => head), ...shown].map((row) =>
    row
      .map((cell, i) => pad(cell, widths[i] ?? 0, columns[i]?.right === true))
      .join('  ')
      .trimEnd(),
  )
}

/** A payload may be something else than JSON, for example encrypted. */
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
