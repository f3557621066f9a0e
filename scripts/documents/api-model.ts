/**
 * What each entry of the package exports, read by the TypeScript compiler from the declarations in
 * `dist`. They are what users see: inferred types are written out, and what is internal is gone.
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { isIdentifier, type Node, SyntaxKind } from 'typescript/unstable/ast'
import {
  API,
  type Checker,
  type Project,
  SymbolFlags,
  type Symbol as TsSymbol,
} from 'typescript/unstable/sync'

/** A name that an entry exports. */
export interface ApiExport {
  readonly name: string
  readonly kind: 'function' | 'class' | 'const' | 'interface' | 'type'
  /** Its declarations without comments; overloads of a function are several. */
  readonly declarations: readonly string[]
  /** The first sentence of its doc comment. */
  readonly says: string
  /** The classes that it extends, nearest first. */
  readonly parents: readonly string[]
  /** Names of this package that its declarations mention. */
  readonly mentions: readonly string[]
  /** The members of an interface, inherited ones included. */
  readonly members: readonly ApiMember[]
}

/** A member of an interface. */
export interface ApiMember {
  readonly name: string
  /** Its type as it is declared, on one line. */
  readonly text: string
  readonly isOptional: boolean
  /** Its doc comment, on one line. */
  readonly says: string
  /** The text of `@defaultValue`. */
  readonly defaultValue: string | undefined
}

/** An entry of the package. */
export interface ApiEntry {
  /** As users import it: `pawl`, `pawl/runs`. */
  readonly name: string
  /** The comment of its file, which says who it is for. */
  readonly says: string
  readonly exports: readonly ApiExport[]
}

/** Where an entry is declared. */
interface Place {
  readonly name: string
  readonly path: string
}

const KINDS = new Map<SyntaxKind, ApiExport['kind']>([
  [SyntaxKind.FunctionDeclaration, 'function'],
  [SyntaxKind.ClassDeclaration, 'class'],
  [SyntaxKind.VariableDeclaration, 'const'],
  [SyntaxKind.InterfaceDeclaration, 'interface'],
  [SyntaxKind.TypeAliasDeclaration, 'type'],
])

/** Reads all entries that `package.json` names; the package must have been built. */
export function readApi(): ApiEntry[] {
  const places = placesOf(JSON.parse(readFileSync('package.json', 'utf8')))
  const api = new API({ cwd: process.cwd() })
  try {
    const snapshot = api.updateSnapshot({ openFiles: places.map(({ path }) => path) })
    return places.map((place) => {
      const project = snapshot.getDefaultProjectForFile(place.path)
      if (!project) throw new Error(`${place.path} belongs to no project`)
      return { name: place.name, says: commentOf(place), exports: exportsOf(project, place) }
    })
  } finally {
    api.close()
  }
}

function placesOf(manifest: {
  readonly name: string
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>
}): Place[] {
  return Object.entries(manifest.exports).flatMap(([key, target]) =>
    typeof target === 'string'
      ? []
      : [{ name: `${manifest.name}${key.slice(1)}`, path: resolve(target.types) }],
  )
}

/** The comment at the top of an entry, without the name that it begins with. */
function commentOf({ name, path }: Place): string {
  const [, comment = ''] = /\/\*\*([\s\S]*?)\*\//.exec(readFileSync(path, 'utf8')) ?? []
  const text = comment
    .replace(/^\s*\* ?/gm, '')
    .replace(/\s+/g, ' ')
    .trim()
  const says = text.replace(`\`${name}\`: `, '')
  return `${says.charAt(0).toUpperCase()}${says.slice(1)}`
}

function exportsOf(project: Project, { path }: Place): ApiExport[] {
  const { checker, program } = project
  const file = program.getSourceFile(path)
  const module = file && checker.getSymbolAtLocation(file)
  if (!module) throw new Error(`${path} is no module`)
  return checker
    .getExportsOfModule(module)
    .map((symbol) => exportOf(project, symbol))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

function exportOf(project: Project, exported: TsSymbol): ApiExport {
  const { checker } = project
  const symbol = targetOf(checker, exported)
  const nodes = symbol.declarations.flatMap((handle) => handle.resolve(project) ?? [])
  const kind = KINDS.get(nodes[0]?.kind ?? SyntaxKind.Unknown)
  if (!kind) throw new Error(`${exported.name} is of a kind that the reference does not know`)
  const declarations = nodes.map((node) => {
    const text = textOf(node)
    return symbol.name === exported.name
      ? text
      : text.replace(new RegExp(`\\b${symbol.name}\\b`), exported.name)
  })
  return {
    name: exported.name,
    kind,
    declarations,
    says: firstSentence(symbol.getDocumentationComment(checker)),
    parents: declarations.flatMap((text) => /^class \w+ extends (\w+)/.exec(text)?.[1] ?? []),
    mentions: mentionsOf(checker, symbol, nodes),
    members: kind === 'interface' ? membersOf(project, symbol) : [],
  }
}

function membersOf(project: Project, symbol: TsSymbol): ApiMember[] {
  const { checker } = project
  return checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol)).map((member) => {
    const [node] = member.declarations.flatMap((handle) => handle.resolve(project) ?? [])
    const [, optional = '', text = ''] = MEMBER.exec(node ? oneLine(textOf(node)) : '') ?? []
    const tags = member.getJsDocTags(checker)
    const tag = tags.find(({ name }) => name === 'defaultValue')
    return {
      name: member.name,
      text,
      isOptional: optional === '?',
      says: oneLine(member.getDocumentationComment(checker)),
      defaultValue: tag && oneLine(String(tag.text ?? '')),
    }
  })
}

/** A member as it is declared: its name, whether it may be absent, and its type or signature. */
const MEMBER = /^(?:readonly )?\w+(\??)(?:: )?(.*?);?$/

const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim()

function targetOf(checker: Checker, symbol: TsSymbol): TsSymbol {
  return symbol.flags & SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
}

/** A declaration without comments, private members and the words that every one begins with. */
function textOf(node: Node): string {
  const text = node.getSourceFile().text.slice(node.pos, node.end)
  const lines = text
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/^\s*\/\/.*$/gm, '')
    .replace(/^\s*#private;\n/gm, '')
    .replace(/^\s*(?:export )?(?:declare )?/, '')
    .split('\n')
    .filter((line) => line.trim() !== '')
  // Removed comments leave their indentation behind.
  return lines
    .map((line) => line.replace(/^( {4})+/, (spaces) => '  '.repeat(spaces.length / 4)))
    .join('\n')
    .replace(/;$/gm, '')
    .trim()
}

/** The names of this package that declarations mention, constructors excepted. */
function mentionsOf(checker: Checker, self: TsSymbol, nodes: readonly Node[]): string[] {
  const identifiers: Node[] = []
  const walk = (node: Node): undefined => {
    if (isIdentifier(node)) identifiers.push(node)
    if (node.kind !== SyntaxKind.Constructor) node.forEachChild(walk)
  }
  for (const node of nodes) node.forEachChild(walk)
  if (identifiers.length === 0) return []
  const symbols = checker.getSymbolAtLocation(identifiers).flatMap((symbol) => {
    const target = symbol && targetOf(checker, symbol)
    return target && target.id !== self.id && isOfPackage(target) ? [target.name] : []
  })
  return [...new Set(symbols)].sort()
}

/** Whether a symbol is declared at the top of a module in `dist`. */
function isOfPackage(symbol: TsSymbol): boolean {
  const parent = symbol.getParent()
  const isTop = parent !== undefined && (parent.flags & SymbolFlags.ValueModule) !== 0
  return isTop && /\/dist\//.test(symbol.declarations[0]?.path ?? '')
}

function firstSentence(comment: string): string {
  const text = comment.replace(/\s+/g, ' ').trim()
  return /^.*?[.!?](?=\s+[A-Z`]|$)/.exec(text)?.[0] ?? text
}
