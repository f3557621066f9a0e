/**
 * What data may do to a screen: nothing. A job's name, error or payload can hold sequences that
 * move the cursor, change the title or turn text around; before it is shown, every such character
 * is written out as an escape.
 */

/** Control characters, line separators, what turns text around, and what cannot be seen. */
const HIDDEN = new RegExp(
  [
    '[\\p{Cc}\\p{Surrogate}\\u2028\\u2029\\u061c\\u200b\\u200e\\u200f\\u202a-\\u202e',
    '\\u2060-\\u2069\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}]',
  ].join(''),
  'gu',
)
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** A text of one line that does nothing to a terminal. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (char) => SHORT[char] ?? escapeOf(char))
}

function escapeOf(char: string): string {
  const code = char.codePointAt(0) as number
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, '0')}`
  return `\\u{${code.toString(16)}}`
}

/**
 * A JSON text on one line, in which everything hidden is written as JSON's own escape: it means the
 * same to a program, and does nothing to a terminal. Outside of strings JSON allows of all these
 * characters only the ends of lines and tabs, which become spaces.
 */
export function visibleJson(text: string): string {
  return text
    .replace(/[\n\r\t]/g, ' ')
    .replace(HIDDEN, (char) =>
      [...Array(char.length).keys()]
        .map((i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, '0')}`)
        .join(''),
    )
}

/** The beginning of a text, with an ellipsis where it was cut. */
export function shortened(text: string, max: number): string {
  // A cut in the middle of a pair would leave half of a character.
  return text.length <= max ? text : `${text.slice(0, max - 1).replace(/\p{Surrogate}$/u, '')}…`
}
