const INDENT = '  '

/** JSON text with lines and indents. It is not parsed, so it may be cut off or not JSON at all. */
export function indented(text: string): string {
  let out = ''
  let depth = 0
  const line = () => `\n${INDENT.repeat(Math.min(depth, 40))}`
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"?|[{}[\],:]|[^"{}[\],:]+/gs)) {
    if (token === '{' || token === '[') {
      depth++
      out += token + line()
    } else if (token === '}' || token === ']') {
      depth = Math.max(0, depth - 1)
      out = /[{[]\n\s*$/.test(out.slice(-90)) ? out.trimEnd() + token : out + line() + token
    } else if (token === ',') out += token + line()
    else if (token === ':') out += ': '
    else out += token
  }
  return out
}
