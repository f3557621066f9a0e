/**
 * Escapes data for a terminal. A job's name, error or payload can contain sequences that move the
 * cursor, change the title or reverse text, so hidden characters are printed as escapes.
 */

/** Control characters, line separators, direction marks and invisible characters. */
const HIDDEN = new RegExp(
  [
    '[\\p{Cc}\\p{Surrogate}\\u2028\\u2029\\u061c\\u200b\\u200e\\u200f\\u202a-\\u202e',
    '\\u2060-\\u2069\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}]',
  ].join(''),
  'gu',
)
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** Returns the text on one line, without characters that a terminal would interpret. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (char) => SHORT[char] ?? escapeOf(char))
}

function escapeOf(char: string): string {
  const code = char.codePointAt(0) as number
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, '0')}`
  return `\\u{${code.toString(16)}}`
}

/**
 * Returns a JSON text on one line, with hidden characters as JSON escapes. It parses to the same
 * value. Outside of strings, JSON allows only line ends and tabs of these; they become spaces.
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

/** Cuts a long text and adds an ellipsis. */
export function shortened(text: string, max: number): string {
  // A cut inside a surrogate pair would leave half of a character.
  return text.length <= max ? text : `${text.slice(0, max - 1).replace(/\p{Surrogate}$/u, '')}…`
}
