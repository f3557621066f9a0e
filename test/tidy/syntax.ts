// What the rules need to know about a source file, read from its syntax tree, so that prose in
// comments and strings is never mistaken for code.
import { type Node, parseSync, visitorKeys } from 'oxc-parser'
import type { SourceFile } from './files.ts'

/** A place in a file, with the text that was found there. */
export interface Found {
  readonly text: string
  readonly start: number
  readonly end: number
}

/** Parses a file; one that does not parse would pass every rule unread, hence it throws. */
export function parse({ path, text }: SourceFile) {
  const result = parseSync(path, text)
  const error = result.errors[0]
  if (error) throw new Error(`${path} cannot be parsed: ${error.message}`)
  return result
}

/** All nodes of a file, each with the one that contains it. */
function* nodesOf(file: SourceFile): Generator<{ node: Node; parent: Node }> {
  const { program } = parse(file)
  const pending: { node: Node; parent: Node }[] = [{ node: program, parent: program }]
  for (let next = pending.pop(); next; next = pending.pop()) {
    yield next
    const { node } = next
    for (const key of visitorKeys[node.type] ?? []) {
      const children = [(node as unknown as Record<string, unknown>)[key]].flat() as (Node | null)[]
      for (const child of children) if (child) pending.push({ node: child, parent: node })
    }
  }
}

/** Everything that a file imports or re-exports from, types included. */
export function importsOf(file: SourceFile): Found[] {
  const found: Found[] = []
  for (const { node } of nodesOf(file)) {
    const source = 'source' in node ? node.source : undefined
    if (source?.type === 'Literal' && typeof source.value === 'string') {
      found.push({ text: source.value, start: node.start, end: node.end })
    }
  }
  return found
}

/** All strings of a file. Holes in a template are filled with a word. */
export function stringsOf(file: SourceFile): Found[] {
  const found: Found[] = []
  for (const { node } of nodesOf(file)) {
    if (node.type === 'Literal' && typeof node.value === 'string') {
      found.push({ text: node.value, start: node.start, end: node.end })
    }
    if (node.type === 'TemplateLiteral') {
      const text = node.quasis.map(({ value }) => value.cooked ?? value.raw).join('hole')
      found.push({ text, start: node.start, end: node.end })
    }
  }
  return found
}

/** All functions, methods and arrow functions of a file that have a body. */
export function functionsOf(file: SourceFile): Found[] {
  const found: Found[] = []
  for (const { node } of nodesOf(file)) {
    const isFunction =
      node.type === 'FunctionDeclaration' ||
      node.type === 'FunctionExpression' ||
      node.type === 'ArrowFunctionExpression'
    if (isFunction && node.body) {
      found.push({ text: node.id?.name ?? 'a function', start: node.start, end: node.end })
    }
  }
  return found
}

/** Global names and static members, `setTimeout` or `Math.random`, as a file's code uses them. */
export function globalsOf(file: SourceFile): Found[] {
  const found: Found[] = []
  for (const { node, parent } of nodesOf(file)) {
    if (node.type !== 'Identifier' || isPropertyName(node, parent)) continue
    const member =
      parent.type === 'MemberExpression' &&
      parent.object === node &&
      parent.property.type === 'Identifier' &&
      !parent.computed
        ? `${node.name}.${parent.property.name}`
        : undefined
    const called = parent.type === 'NewExpression' || parent.type === 'CallExpression'
    // A conversion, such as `new Date(text)`, is not a call that reads the clock.
    const converts = parent.type === 'NewExpression' && parent.arguments.length === 1
    const isCall = called && parent.callee === node && !converts
    const call = isCall ? `${node.name}()` : undefined
    for (const text of [node.name, member, call]) {
      if (text) found.push({ text, start: node.start, end: node.end })
    }
  }
  return found
}

function isPropertyName(node: Node, parent: Node): boolean {
  if (parent.type === 'MemberExpression') return parent.property === node && !parent.computed
  return 'key' in parent && parent.key === node && !('computed' in parent && parent.computed)
    ? !('shorthand' in parent && parent.shorthand)
    : false
}
