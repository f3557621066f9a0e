/**
 * Splits a text of SQL into its statements, to find out what a text would do besides its first
 * statement. It knows what both databases quote: 'texts', E'texts' with backslashes, "names",
 * `names`, $tag$texts$tag$ and comments. Comments end at the first end mark: PostgreSQL nests them,
 * and the rest of such a comment then counts as a statement.
 *
 * The body of a trigger or function (CREATE … BEGIN …; …; END) belongs to its statement.
 */

/** Quoted parts and comments. An opening mark without its end extends to the end of the text. */
const TOKENS: readonly RegExp[] = [
  /--[^\n]*/,
  /\/\*[\s\S]*?(?:\*\/|$)/,
  /\b[eE]'(?:[^'\\]|\\[\s\S]|'')*(?:'|$)/,
  /'(?:[^']|'')*(?:'|$)/,
  /"(?:[^"]|"")*(?:"|$)/,
  /`[^`]*(?:`|$)/,
  /(?<![\w$])(?<tag>\$(?:[A-Za-z_]\w*)?\$)[\s\S]*?(?:\k<tag>|$)/,
  /;/,
  /(?:(?!\b[eE]')[^;'"`$/-])+/,
  /[\s\S]/,
]
const TOKEN = new RegExp(TOKENS.map(({ source }) => source).join('|'), 'g')

const COMMENT = /^(?:--|\/\*)/
const CREATE = /^CREATE\b/i
const BODY = /\bBEGIN\b/i
const BODY_END = /^END\b/i

interface Statement {
  /** Without comments. */
  text: string
  /** Without comments and quoted parts. */
  bare: string
}

/** The statements of a text, without comments and blanks around them. */
export function statementsOf(sql: string): string[] {
  const all: Statement[] = [{ text: '', bare: '' }]
  for (const { 0: token, groups } of sql.matchAll(TOKEN)) {
    const last = all[all.length - 1] as Statement
    if (token === ';') all.push({ text: '', bare: '' })
    else if (COMMENT.test(token)) last.text += ' '
    else {
      last.text += token
      const isQuoted = groups?.tag !== undefined || /^(?:[eE]?'|["`])/.test(token)
      last.bare += isQuoted ? '?' : token
    }
  }
  return withBodies(all.map(({ text, bare }) => ({ text: text.trim(), bare: bare.trim() })))
}

function withBodies(parts: readonly Statement[]): string[] {
  const statements: string[] = []
  for (let at = 0; at < parts.length; at++) {
    const { text, bare } = parts[at] as Statement
    if (text === '') continue
    statements.push(text)
    if (!CREATE.test(bare) || !BODY.test(bare)) continue
    const end = parts.findIndex((part, i) => i > at && BODY_END.test(part.bare))
    if (end !== -1) at = end
  }
  return statements
}

/** The placeholders of a text on SQLite, outside of quotes and comments. */
interface Placeholders {
  /** How many `?` there are. */
  readonly anonymous: number
  /** Numbered and named ones, such as `?1`, `$1` and `:name`. */
  readonly others: readonly string[]
}

const PLACEHOLDER = /\?\d*|(?<![\w$:@])[$@:][A-Za-z0-9_]+/g

/** Finds the placeholders of a text. */
export function placeholdersIn(sql: string): Placeholders {
  let code = ''
  for (const { 0: token, groups } of sql.matchAll(TOKEN)) {
    const isQuoted = groups?.tag !== undefined || /^(?:[eE]?'|["`])/.test(token)
    code += isQuoted || COMMENT.test(token) ? ' ' : token
  }
  const found = [...code.matchAll(PLACEHOLDER)].map(([text]) => text)
  const others = found.filter((text) => text !== '?')
  return { anonymous: found.length - others.length, others }
}
