// The rule that every function and class that a user can import has a doc comment. Types and
// constants need one only if their name and fields do not say enough.
import { dirname, join } from 'node:path/posix'
import type { Node } from 'oxc-parser'
import { lineAt, type Rule, type SourceFile } from './files.ts'
import { parse } from './syntax.ts'

/** A name that a module exports, and where it is declared. */
interface Export {
  readonly name: string
  readonly file: SourceFile
  readonly declaration: Node
}

/** Every function and class that an entry point exports, or re-exports, has a doc comment. */
export const documentedExports =
  (entryPoints: readonly string[]): Rule =>
  (files) => {
    const fileAt = new Map(files.map((file) => [file.path, file]))
    const problems = entryPoints.flatMap((path) =>
      exportsOf(path, fileAt).flatMap(({ name, file, declaration }) =>
        !isCallable(declaration, name) || hasDocComment(file, declaration)
          ? []
          : `${file.path}:${lineAt(file.text, declaration.start)}: ${name} has no doc comment`,
      ),
    )
    return [...new Set(problems)]
  }

function exportsOf(path: string, fileAt: ReadonlyMap<string, SourceFile>): Export[] {
  const file = fileAt.get(path)
  if (!file) return []
  const { body } = parse(file).program
  const from = (source: string) => exportsOf(join(dirname(path), source), fileAt)

  return body.flatMap((statement): Export[] => {
    if (statement.type === 'ExportAllDeclaration') return from(statement.source.value)
    if (statement.type === 'ExportDefaultDeclaration') {
      return [{ name: 'default', file, declaration: statement }]
    }
    if (statement.type !== 'ExportNamedDeclaration') return []
    if (statement.declaration) {
      return namesOf(statement.declaration).map((name) => ({ name, file, declaration: statement }))
    }
    return statement.specifiers.flatMap(({ local }) => {
      const name = local.type === 'Literal' ? local.value : local.name
      if (statement.source) return from(statement.source.value).filter(named(name))
      return declarationsOf(name, body, file, from)
    })
  })
}

/** Where a module's own name, exported by a list, was declared or imported from. */
function declarationsOf(
  name: string,
  body: readonly Node[],
  file: SourceFile,
  from: (source: string) => Export[],
): Export[] {
  return body.flatMap((statement): Export[] => {
    if (statement.type === 'ImportDeclaration') {
      const specifier = statement.specifiers.find(({ local }) => local.name === name)
      if (specifier?.type !== 'ImportSpecifier') return []
      const { imported } = specifier
      const original = imported.type === 'Literal' ? imported.value : imported.name
      return from(statement.source.value).filter(named(original))
    }
    return namesOf(statement).includes(name) ? [{ name, file, declaration: statement }] : []
  })
}

const named = (name: string) => (item: Export) => item.name === name

/** The names that a declaration declares. */
function namesOf(node: Node): string[] {
  switch (node.type) {
    case 'VariableDeclaration':
      return node.declarations.flatMap(({ id }) => (id.type === 'Identifier' ? [id.name] : []))
    case 'FunctionDeclaration':
    case 'TSDeclareFunction':
    case 'ClassDeclaration':
      return node.id ? [node.id.name] : []
    case 'TSInterfaceDeclaration':
    case 'TSTypeAliasDeclaration':
      return [node.id.name]
    default:
      return []
  }
}

/** Returns true if the declaration of a name is a function, a class, or a constant function. */
function isCallable(node: Node, name: string): boolean {
  switch (node.type) {
    case 'ExportNamedDeclaration':
      return node.declaration !== null && isCallable(node.declaration, name)
    case 'ExportDefaultDeclaration':
      return isCallable(node.declaration, name)
    case 'VariableDeclaration':
      return node.declarations.some(
        ({ id, init }) => id.type === 'Identifier' && id.name === name && isFunction(init),
      )
    case 'FunctionDeclaration':
    case 'TSDeclareFunction':
    case 'ClassDeclaration':
      return true
    default:
      return isFunction(node)
  }
}

function isFunction(node: Node | null): boolean {
  return node?.type === 'ArrowFunctionExpression' || node?.type === 'FunctionExpression'
}

function hasDocComment(file: SourceFile, declaration: Node): boolean {
  return /\/\*\*(?:[^*]|\*(?!\/))*\*\/\s*$/.test(file.text.slice(0, declaration.start))
}
