import { type Expression, parseSync, type Super, Visitor } from 'oxc-parser'

const testFunctions = new Set(['describe', 'it', 'test'])

/**
 * The titles of all tests and groups in a test file, as they are written there. A title of a
 * parameterised test is its template, and one that is put together at run time has no literal form
 * and is not found.
 */
export function testTitles(path: string, text: string): Set<string> {
  const titles = new Set<string>()
  const visitor = new Visitor({
    CallExpression({ callee, arguments: [title] }) {
      if (!testFunctions.has(rootName(callee) ?? '')) return
      if (title?.type === 'Literal' && typeof title.value === 'string') titles.add(title.value)
      if (title?.type === 'TemplateLiteral' && title.expressions.length === 0) {
        titles.add(title.quasis.map(({ value }) => value.cooked).join(''))
      }
    },
  })
  visitor.visit(parseSync(path, text).program)
  return titles
}

/** The name at the root of a call like `it`, `it.each(table)` or `test.concurrent`. */
function rootName(callee: Expression | Super): string | undefined {
  switch (callee.type) {
    case 'Identifier':
      return callee.name
    case 'MemberExpression':
      return rootName(callee.object)
    case 'CallExpression':
      return rootName(callee.callee)
    case 'TaggedTemplateExpression':
      return rootName(callee.tag)
    default:
      return undefined
  }
}
