/**
 * A full-screen view. It uses the alternate screen, so what the terminal showed before comes back.
 * A frame is one write between the marks of synchronized output, which terminals show at once, and
 * it overwrites the frame before line by line: nothing is cleared first, so nothing flickers. Long
 * lines are cut by the terminal (no wrapping), which knows how wide its characters are.
 */
import type { Output } from '../output.ts'
import type { Line } from './stats-text.ts'

const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l'
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l'
const BEGIN_FRAME = '\u001b[?2026h\u001b[H'
/** Ends the line, and clears what the frame before has on the rest of it. */
const END_LINE = '\u001b[K'
const END_FRAME = '\u001b[J\u001b[?2026l'

export class Screen {
  readonly #output: Output
  readonly #stdin: NodeJS.ReadStream
  readonly #ends: (() => void)[] = []

  constructor(output: Output, stdin: NodeJS.ReadStream) {
    this.#output = output
    this.#stdin = stdin
  }

  /** Takes over the terminal. `onKey` receives what is typed; Ctrl-C is `\x03`. */
  open({ onKey, onResize }: { onKey: (keys: string) => void; onResize: () => void }): void {
    const close = () => this.close()
    // Also a second signal or an error that nothing catches must restore the terminal.
    process.once('exit', close)
    this.#ends.push(() => process.off('exit', close))
    this.#output.text(ENTER)
    this.#ends.push(() => this.#output.text(LEAVE))
    this.#ends.push(this.#output.onResize(onResize))
    if (this.#stdin.isTTY) this.#listen(onKey)
  }

  #listen(onKey: (keys: string) => void): void {
    const stdin = this.#stdin
    const onData = (chunk: Buffer | string) => onKey(String(chunk))
    // The terminal was closed.
    const onEnd = () => onKey('q')
    stdin.setRawMode(true)
    stdin.on('data', onData).once('end', onEnd).on('error', onEnd)
    this.#ends.push(() => {
      stdin.off('data', onData).off('end', onEnd)
      stdin.setRawMode(false)
      stdin.pause()
    })
  }

  /** Draws the lines that fit; the caller must have made them visible. */
  draw(lines: readonly Line[]): void {
    const { columns, rows } = this.#output.size
    const texts = lines.slice(0, rows).map(({ text, style }) => {
      const cut = [...text].slice(0, columns).join('')
      return style === undefined ? cut : this.#output.style(style, cut)
    })
    const body = texts.map((text) => `${text}${END_LINE}`).join('\r\n')
    this.#output.text(`${BEGIN_FRAME}${body}${texts.length < rows ? '\r\n' : ''}${END_FRAME}`)
  }

  /** Restores the terminal; a second call does nothing. */
  close(): void {
    for (const end of this.#ends.splice(0).reverse()) {
      try {
        end()
      } catch {
        // The terminal may be gone. The rest must be restored all the same.
      }
    }
  }
}
