import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** A file as the rules see it: its path from the root of the repository, and its text. */
export interface SourceFile {
  readonly path: string
  readonly text: string
}

/** A rule: what in these files breaks it, as `path:line: what is wrong`. */
export type Rule = (files: readonly SourceFile[]) => string[]

/** All files below the given folders or files whose names match. */
export function readFiles(roots: readonly string[], pattern: RegExp): SourceFile[] {
  return roots
    .filter((root) => existsSync(root))
    .flatMap((root) =>
      statSync(root).isFile()
        ? [root]
        : readdirSync(root, { recursive: true, encoding: 'utf8' }).map((name) => join(root, name)),
    )
    .filter((path) => pattern.test(path) && statSync(path).isFile())
    .sort()
    .map((path) => ({ path, text: readFileSync(path, 'utf8') }))
}

/** The number of the line on which a character stands. */
export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length
}
