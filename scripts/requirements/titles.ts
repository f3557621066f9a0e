// Which tests a file has, and which of them a run may skip.
import {
  type CallExpression,
  type Expression,
  type ObjectProperty,
  parseSync,
  type Super,
  type TemplateLiteral,
  Visitor,
} from 'oxc-parser'

/** One test as it is written. */
export interface WrittenTest {
  /** Its title. In a title that is put together at run time each part that varies is `*`. */
  readonly title: string
  /** Whether it runs on some machines only (`skipIf`, `runIf`), or never (`skip`, `todo`). */
  readonly runs: 'always' | 'sometimes' | 'never'
}

const tests = new Set(['it', 'test'])
const groups = new Set(['describe'])
const conditions = new Set(['skipIf', 'runIf'])
const exclusions = new Set(['skip', 'todo'])
/** Cases of the store contract are functions under their titles, not calls of a test runner. */
const CONTRACT = 'test/contract/store/'

/** The tests in a file. Groups (`describe`) are no tests, but what they skip their tests skip. */
export function testsIn(path: string, text: string): WrittenTest[] {
  const found: WrittenTest[] = []
  const around: WrittenTest['runs'][] = []
  const { program } = parseSync(path, text)
  const visitor = new Visitor({
    CallExpression(call) {
      const names = namesOf(call.callee)
      const root = names[0] ?? ''
      if (!tests.has(root) && !groups.has(root)) return
      const title = titleOf(call)
      if (title === undefined) return
      const runs = worst([runsOf(names), ...around])
      if (groups.has(root)) around.push(runsOf(names))
      else found.push({ title, runs })
    },
    'CallExpression:exit'(call) {
      const names = namesOf(call.callee)
      if (groups.has(names[0] ?? '') && titleOf(call) !== undefined) around.pop()
    },
    Property(property) {
      const title = path.startsWith(CONTRACT) ? caseOf(property as ObjectProperty) : undefined
      if (title !== undefined) found.push({ title, runs: 'always' })
    },
    ArrayExpression({ elements: [key] }) {
      // Titles that are put together stand first in the pairs from which cases are made.
      if (!path.startsWith(CONTRACT) || key?.type !== 'TemplateLiteral') return
      found.push({ title: templateTitle(key), runs: 'always' })
    },
  })
  visitor.visit(program)
  return found
}

/** Whether a title in the table names a test: the same text, or one that a varying title allows. */
export function isNamed(title: string, { title: written }: WrittenTest): boolean {
  return title === written || (written.includes('*') && patternOf(written, /\*/).test(title))
}

/** A pattern for titles as a runner reports them: `%s` and `$name` stand for anything. */
export function reportedAs(title: string): RegExp {
  return patternOf(title, /%[sdifjoO#%]|\$[\w.]+|\*/)
}

function patternOf(title: string, varying: RegExp): RegExp {
  const parts = title.split(new RegExp(varying, 'g'))
  const escaped = parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${escaped.join('.*')}$`, 's')
}

/** The names in a call like `it`, `it.each(table)`, `describe.runIf(condition)`. */
function namesOf(callee: Expression | Super): string[] {
  switch (callee.type) {
    case 'Identifier':
      return [callee.name]
    case 'MemberExpression': {
      const { property } = callee
      const names = namesOf(callee.object)
      return property.type === 'Identifier' ? [...names, property.name] : names
    }
    case 'CallExpression':
      return namesOf(callee.callee)
    case 'TaggedTemplateExpression':
      return namesOf(callee.tag)
    default:
      return []
  }
}

function runsOf(names: readonly string[]): WrittenTest['runs'] {
  if (names.some((name) => exclusions.has(name))) return 'never'
  return names.some((name) => conditions.has(name)) ? 'sometimes' : 'always'
}

function worst(runs: readonly WrittenTest['runs'][]): WrittenTest['runs'] {
  if (runs.includes('never')) return 'never'
  return runs.includes('sometimes') ? 'sometimes' : 'always'
}

function titleOf({ arguments: [title] }: CallExpression): string | undefined {
  if (title?.type === 'Literal' && typeof title.value === 'string') return title.value
  return title?.type === 'TemplateLiteral' ? templateTitle(title) : undefined
}

function templateTitle({ quasis }: TemplateLiteral): string {
  return quasis.map(({ value }) => value.cooked).join('*')
}

/** The title of a case of the contract: a key that is a text, of a function or a call. */
function caseOf({ key, value }: ObjectProperty): string | undefined {
  if (key.type !== 'Literal' || typeof key.value !== 'string') return undefined
  const kinds = ['ArrowFunctionExpression', 'FunctionExpression', 'CallExpression']
  return kinds.includes(value.type) ? key.value : undefined
}
